"""Take what is private out of text and facts before they leave the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.machine.redact_paths import hide_paths

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

Redact = Callable[[str], str]

COMMON = frozenset(
    """root user admin ubuntu debian jovyan kaggle colab docker nobody runner vscode localhost
    none linux windows gpu cuda python tensorflow nvidia""".split()
)
"""Names of accounts and machines that tell nothing."""
WORD_LENGTH = 5
"""Names from this length on are hidden inside other words too; shorter ones only as words."""
SECRET_NAME = (
    r"[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|credential|signature|cookie|authorization"
    r"|bearer|(?:api|access|private)[_-]?key|(?:_key|_pat|auth)(?![a-z]))[\w.-]*"
)
VERSION_FIELDS = frozenset("version cuda cudnn tensorflow keras glibc library_version".split())
_VERSION = re.compile(r"\d+(?:\.\d+){0,4}(?:[-+.]?(?:a|b|rc|dev|post|cu)\d+){0,3}")
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:tensorflow|nvidia|github|pypi|pythonhosted|python|keras|docker|conda"
    r"|anaconda|microsoft|apple|stackoverflow)\.(?:com|org|io)"
)
_PATTERNS = (
    (r"-----BEGIN [^-]*-----[\s\S]*?(?:-----END [^-]*-----|\Z)", "<key>"),
    (r"\b([a-z][a-z0-9+.-]{0,20}://)[^\s/@\"'<>]+@[^\s\"'<>]*", r"\1<secret>@<host>"),
    (rf"([?&;]{SECRET_NAME}=)[^\s&;\"'<>]+", r"\1<secret>"),
    (
        r"(authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+)[^\s\"',]+",
        r"\1<secret>",
    ),
    (
        rf"(?<![\w.-])([\"']?{SECRET_NAME}[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;<>\"']+)",
        r"\1<secret>",
    ),
    (rf"(?<![\w-])(--{SECRET_NAME}\s+)(?!-)[^\s<>]+", r"\1<secret>"),
    (r"\b(bearer\s+)[\w.~+/=-]{8,}", r"\1<secret>"),
    (
        r"\b(?:gh[a-z]_|github_pat_|glpat-|hf_|sk-|nvapi-|pypi-|xox[a-z]-|AKIA|ASIA|AIza|ya29\.)"
        r"[\w.-]{8,}",
        "<secret>",
    ),
    (r"\beyJ[\w-]{8,}(?:\.[\w-]+){1,2}", "<secret>"),
    (r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
    (
        rf"\b(https?|grpc|ssh|git|s3|gs)://(?!{_PUBLIC}(?![\w.-])|<)[^\s\"'<>]+",
        r"\1://<host>",
    ),
    (r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", "<mac>"),
    (r"\b[0-9a-f]{32,}\b", "<hex>"),
)
_RULES = tuple((re.compile(pattern, re.IGNORECASE), text) for pattern, text in _PATTERNS)
_PLACEHOLDERS = frozenset("user host path secret ip email hex key env mac id".split())
_GPU = re.compile(rf"\b(GPU-|MIG-|MIG-GPU-)?({_UUID})(/\d+/\d+)?")
_SHORT_GPU = re.compile(r"\b(GPU|MIG)-([0-9a-fA-F]{4,})\b")
_ADDRESS = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?![\w]|\.\d)(:\d+)?")
_VERSION_BEFORE = re.compile(
    r"(?:[=<>~!]=|[<>]|\bversion[\"']?\s*[:=]?\s*[\"']?v?|-cu\d+[ (]+"
    r"|\.so(?:\.\d+)*:? |\binstalled |\bcudnn[ :=]+)$",
    re.IGNORECASE,
)
_ADDRESS_6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:[0-9a-fA-F]{1,4}:){0,6}(?:[0-9a-fA-F]{1,4})?::"
    r"(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F.]{1,15})(?![\w:])"
)
_CLUSTER = re.compile(r"([\"'\[,]\s*[\"']?)([a-zA-Z][\w.-]*)(:\d{2,5}\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Names that must not leave the machine."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


def identity_of(environment: Mapping[str, str], host_name: str) -> Identity:
    """Return the names of this account and machine, as variables and the kernel tell them."""
    users = [environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")]
    hosts = [host_name, environment.get("HOSTNAME", ""), environment.get("COMPUTERNAME", "")]
    hosts += [name.partition(".")[0] for name in hosts]
    homes = [environment.get(name, "") for name in ("HOME", "USERPROFILE")]
    return Identity(
        users=tuple(filter(None, dict.fromkeys(users))),
        hosts=tuple(filter(None, dict.fromkeys(hosts))),
        homes=tuple(filter(None, dict.fromkeys(homes))),
    )


def redactor(identity: Identity) -> Redact:
    """Make a function that hides what is private; equal cards keep equal placeholders in it."""
    seen: dict[str, str] = {}

    def redact(text: str) -> str:
        if '"cluster"' in text or '"worker"' in text:
            text = _CLUSTER.sub(r"\1<host>\3", text)
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        text = _GPU.sub(lambda one: _numbered(seen, one[1] or "", one[2]) + (one[3] or ""), text)
        text = _SHORT_GPU.sub(lambda one: _numbered(seen, f"{one[1]}-", one[2]), text)
        text = hide_paths(text, identity.homes)
        text = _ADDRESS.sub(_address, text)
        text = _ADDRESS_6.sub("<ip>", text)
        text = _names(text, identity.hosts, "<host>")
        return _names(text, identity.users, "<user>")

    return redact


def redact_facts(facts: MachineFacts, identity: Identity) -> MachineFacts:
    """Return the same facts with every text redacted; plain versions stay as they are."""
    redact = redactor(identity)
    raw = _walk(to_builtins(facts), "", redact)
    raw["environment"] = {
        redact(name): _variable(name, value, redact) for name, value in facts.environment.items()
    }
    return from_builtins(raw, MachineFacts, where="the redacted facts")


def _variable(name: str, value: str, redact: Redact) -> str:
    if re.fullmatch(SECRET_NAME, name, re.IGNORECASE) and value:
        return "<secret>"
    return redact(value)


def _walk(value: Value, key: str, redact: Redact) -> Value:
    if isinstance(value, dict):
        return {name: _walk(one, name, redact) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(one, key, redact) for one in value]
    if not isinstance(value, str) or (key in VERSION_FIELDS and _VERSION.fullmatch(value)):
        return value
    return redact(value)


def _numbered(seen: dict[str, str], kind: str, value: str) -> str:
    """Write ``GPU-<1>``: one number for each card, so that two texts can still be compared."""
    number = seen.setdefault(value.lower()[:8], str(len(seen) + 1))
    return f"{kind or 'id-'}<{number}>"


def _address(one: re.Match[str]) -> str:
    """Replace an address by a placeholder; four numbers that are said to be a version stay."""
    before = one.string[max(0, one.start() - 30) : one.start()]
    is_version = _VERSION_BEFORE.search(before) and not one[2]
    return one[0] if is_version else f"<ip>{one[2] or ''}"


def _names(text: str, names: tuple[str, ...], placeholder: str) -> str:
    for name in sorted(names, key=len, reverse=True):
        if name.lower() in COMMON or len(name) < 2:
            continue
        inner = re.escape(name)
        if len(name) < WORD_LENGTH:
            inner = rf"(?<![^\W_]){inner}(?![^\W_])"
        if name.lower() in _PLACEHOLDERS:
            inner = rf"(?<!<){inner}(?!>)"
        text = re.sub(inner, placeholder, text, flags=re.IGNORECASE)
    return text
