from __future__ import annotations

from tests.runtime.fronts import table

from tfdyno.serving.front.openapi import DOCS_PAGE, openapi


def test_the_document_has_the_shape_of_the_signature() -> None:
    paths = openapi(table(), with_token=False)["paths"]
    body = paths["/v1/models/m:predict"]["post"]["requestBody"]["content"]["application/json"]
    rows = body["schema"]["oneOf"][0]["properties"]["instances"]
    row = rows["items"]["anyOf"][0]
    assert row == {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}
    infer = paths["/v2/models/m/infer"]["post"]["requestBody"]["content"]["application/json"]
    tensor = infer["schema"]["properties"]["inputs"]["prefixItems"][0]
    assert tensor["properties"]["datatype"] == {"const": "FP32"}


def test_a_token_is_told_and_health_needs_none() -> None:
    document = openapi(table(), with_token=True)
    assert document["security"] == [{"token": []}]
    assert document["paths"]["/readyz"]["get"]["security"] == []
    assert "security" not in document["paths"]["/metrics"]["get"]


def test_the_page_loads_nothing_from_elsewhere() -> None:
    assert b"http://" not in DOCS_PAGE
    assert b"https://" not in DOCS_PAGE
    assert b"src=" not in DOCS_PAGE
