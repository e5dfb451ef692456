"""The OpenAPI document of what is served, and the page that shows it without any network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdyno.serving.front.table import Signature, Table, TensorSpec

_ERRORS = {
    "400": "The request does not fit the model's signature, or is no JSON.",
    "401": "The token is missing or wrong.",
    "404": "There is no such model, version or label.",
    "405": "Another method is meant.",
    "408": "The request came too slowly.",
    "413": "The body is too long.",
    "415": "The body is compressed.",
    "429": "Too many rows wait; see Retry-After.",
    "500": "The model failed.",
    "501": "Not served.",
    "503": "No model is ready, the server is shutting down, or the deadline cannot be met.",
    "504": "The deadline passed.",
}
_NUMBERS = {"float16", "float32", "float64"}


def openapi(table: Table, *, with_token: bool) -> dict[str, Any]:
    """Write ``/openapi.json``: OpenAPI 3.1, with the signatures of what is served."""
    paths = {
        "/healthz": _get("Whether the process answers.", open_=True),
        "/readyz": _get("Whether a model is served.", "503", open_=True),
        "/v2/health/live": _get("Whether the process answers.", open_=True),
        "/v2/health/ready": _get("Whether a model is served.", "503", open_=True),
        "/v2": _get("Name and extensions of the server."),
        "/metrics": _get("Counters for Prometheus.", kind="text/plain"),
        "/openapi.json": _get("This document."),
        "/docs": _get("This document as a page.", kind="text/html"),
    }
    for name, served in table.models.items():
        version = served.versions.get(served.default)
        signature = version.signatures.get("serving_default") if version else None
        if version and signature is None:
            signature = next(iter(version.signatures.values()), None)
        paths |= _v1_paths(name, signature) | _v2_paths(name, signature)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "tfdyno serve", "version": "1"},
        "paths": paths,
    }
    if with_token:
        schemes = {"token": {"type": "http", "scheme": "bearer"}}
        document |= {"components": {"securitySchemes": schemes}, "security": [{"token": []}]}
    return document


def _v1_paths(name: str, signature: Signature | None) -> dict[str, Any]:
    base, version = f"/v1/models/{name}", f"/v1/models/{name}/versions/{{version}}"
    predict = {
        "summary": "Predict; TensorFlow Serving's form.",
        "requestBody": _body(_predict_schema(signature)),
        "responses": _responses("400", "413", "415", "429", "500", "503", "504"),
    }
    responses = _responses("400", "404", "413", "415", "429", "500", "503", "504")
    with_version = {**predict, "responses": responses}
    return {
        base: _get("The versions and their state."),
        version: _get("The state of one version.", "404", parameters=[_VERSION]),
        f"{base}/metadata": _get("The signatures.", "503"),
        f"{version}/metadata": _get("The signatures of one version.", "404", parameters=[_VERSION]),
        f"{base}:predict": {"post": {**predict, "parameters": [_TIMEOUT]}},
        f"{version}:predict": {"post": {**with_version, "parameters": [_VERSION, _TIMEOUT]}},
    }


def _v2_paths(name: str, signature: Signature | None) -> dict[str, Any]:
    base = f"/v2/models/{name}"
    infer = {
        "summary": "Infer; KServe's protocol, version 2.",
        "requestBody": _body(_infer_schema(signature)),
        "responses": _responses("400", "413", "415", "429", "500", "503", "504"),
        "parameters": [_TIMEOUT],
    }
    return {
        base: _get("Inputs and outputs.", "503"),
        f"{base}/ready": _get("Whether it is served.", "503"),
        f"{base}/infer": {"post": infer},
    }


_VERSION = {
    "name": "version", "in": "path", "required": True,
    "schema": {"type": "integer", "minimum": 0, "maximum": 10**17},
}  # fmt: skip
_TIMEOUT = {
    "name": "X-Request-Timeout-Ms", "in": "header", "required": False,
    "schema": {"type": "integer", "minimum": 1, "maximum": 10**8},
}  # fmt: skip


def _get(
    summary: str,
    *errors: str,
    kind: str = "application/json",
    open_: bool = False,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    answer: dict[str, Any] = {"summary": summary, "responses": _responses(*errors, kind=kind)}
    if parameters:
        answer["parameters"] = parameters
    if open_:
        answer["security"] = []
    return {"get": answer}


def _responses(*errors: str, kind: str = "application/json") -> dict[str, Any]:
    schema = {"type": "object"} if kind == "application/json" else {"type": "string"}
    fine = {"description": "The answer.", "content": {kind: {"schema": schema}}}
    told = {"200": fine}
    for code in ("401", "405", *errors):
        told |= _error(code)
    return told


def _error(code: str) -> dict[str, Any]:
    schema = {
        "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}},
    }  # fmt: skip
    content = {"application/json": {"schema": schema}}
    return {code: {"description": _ERRORS[code], "content": content}}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _predict_schema(signature: Signature | None) -> dict[str, Any]:
    if signature is None:
        return {"type": "object"}
    columns = {face.name: _tensor(face, face.shape) for face in signature.inputs}
    inner = {face.name: _tensor(face, face.shape[1:]) for face in signature.inputs}
    column, row = _named(columns), _named(inner)
    if len(signature.inputs) == 1:
        name = signature.inputs[0].name
        column, row = {"anyOf": [columns[name], column]}, {"anyOf": [inner[name], row]}
    rows = {"type": "array", "minItems": 1, "items": row}
    text = {"signature_name": {"type": "string"}}
    return {
        "oneOf": [
            {"type": "object", "required": ["instances"],
             "properties": {"instances": rows, **text}, "additionalProperties": False},
            {"type": "object", "required": ["inputs"],
             "properties": {"inputs": column, **text}, "additionalProperties": False},
        ]
    }  # fmt: skip


def _named(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _infer_schema(signature: Signature | None) -> dict[str, Any]:
    if signature is None:
        return {"type": "object"}
    tensors = [
        _named(
            {
                "name": {"const": face.name},
                "datatype": {"const": face.datatype},
                "shape": {
                    "type": "array",
                    "prefixItems": [
                        {"type": "integer", "minimum": 1} if size is None else {"const": size}
                        for size in face.shape
                    ],
                    "minItems": len(face.shape),
                    "maxItems": len(face.shape),
                },
                "data": {"type": "array", "items": _scalar(face)},
            }
        )
        for face in signature.inputs
    ]
    count = len(tensors)
    inputs = {"type": "array", "prefixItems": tensors, "minItems": count, "maxItems": count}
    properties = {"inputs": inputs, "id": {"type": "string"}}
    return {"type": "object", "required": ["inputs"], "properties": properties}


def _tensor(face: TensorSpec, shape: tuple[int | None, ...]) -> dict[str, Any]:
    schema = _scalar(face)
    for size in reversed(shape):
        schema = {"type": "array", "items": schema}
        schema |= {"minItems": 1} if size is None else {"minItems": size, "maxItems": size}
    return schema


def _scalar(face: TensorSpec) -> dict[str, Any]:
    if face.dtype == "string":
        encoded = _named({"b64": {"type": "string", "contentEncoding": "base64"}})
        return {"anyOf": [{"type": "string"}, encoded]}
    if face.dtype == "bool":
        return {"type": "boolean"}
    return {"type": "number" if face.dtype in _NUMBERS else "integer"}


DOCS_PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>tfdyno serve</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
summary{cursor:pointer;padding:.4rem 0}code,pre{font:14px/1.4 ui-monospace,monospace}
pre{background:#f4f4f6;padding:.8rem;overflow:auto}b{display:inline-block;width:4rem}
details{border-bottom:1px solid #ddd}td{padding:.1rem 1rem .1rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#16161a;color:#eee}pre{background:#222}}</style>
<h1>What this server answers</h1><p>From <a href="openapi.json">openapi.json</a>.</p>
<main id="all"></main><script>
const make=(tag,text)=>{const e=document.createElement(tag);if(text)e.textContent=text;return e};
fetch("openapi.json").then(r=>r.json()).then(d=>{for(const[path,ways]of Object.entries(d.paths))
for(const[way,o]of Object.entries(ways)){const box=make("details"),line=make("summary");
line.append(make("b",way.toUpperCase()),make("code",path)," "+(o.summary||""));box.append(line);
if(o.requestBody){box.append(make("p","Body"),make("pre",JSON.stringify(
o.requestBody.content["application/json"].schema,null,1)))}
const t=make("table");for(const[code,r]of Object.entries(o.responses)){const row=make("tr");
row.append(make("td",code),make("td",r.description));t.append(row)}box.append(t);
document.getElementById("all").append(box)}});</script></html>
"""
