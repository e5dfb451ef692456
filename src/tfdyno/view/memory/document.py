"""What ``memory --json`` prints: the documented keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.view.base.documents import fields_of, trace_document
from tfdyno.view.base.recipe_text import recipe_document
from tfdyno.view.doctor.document import finding_document
from tfdyno.words.memory.plan import plan_headline

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_answer import MemoryAnswer
    from tfdyno.core.choose.memory_map import CardMemory
    from tfdyno.core.choose.memory_plan import MemoryPlan, PlannedOption
    from tfdyno.core.doctor.finding import Diagnosis
    from tfdyno.core.doctor.oom import OomReport

_OF_ESTIMATE = (
    "gpu",
    "batch_size",
    "precision",
    "execution",
    "fits",
    "fits_verified",
    "peak_memory_bytes",
    "device_memory_bytes",
    "usable_memory_bytes",
    "context_bytes",
    "process_memory_bytes",
    "memory_parts_bytes",
    "max_batch_size",
    "made_by",
    "memory_measured_on",
)


def memory_document(answer: MemoryAnswer) -> dict[str, Any]:
    """Write ``{"memory": […], "plan": […], "findings": […], "log": …, "trace": …, …}``."""
    trace = answer.trace
    return {
        "memory": [_card(one) for one in answer.cards],
        "plan": [_plan(one, answer.names[one.gpu]) for one in answer.plans],
        "findings": [finding_document(one) for one in answer.findings],
        "log": _log(answer.log, answer.oom) if answer.log else None,
        "trace": {**trace_document(trace), "batch_source": answer.batch_source} if trace else None,
        "notes": list(answer.notes),
    }


def _card(one: CardMemory) -> dict[str, Any]:
    found = to_builtins(one.map)
    need = one.map.allocator
    return {
        **fields_of(one.estimate, *_OF_ESTIMATE),
        "peak": {
            "share": one.map.peak_share,
            "live_bytes": one.map.peak_bytes,
            "layer": one.map.peak_layer,
            "phase": one.map.peak_phase,
            "parts_bytes": one.map.parts_bytes,
            "tensors": one.map.held_count,
        },
        "timeline": found["moments"],
        "largest": found["tensors"],
        "layers": found["layers"],
        "fragmentation": {
            **found["allocator"],
            "fragment_bytes": need.fragment_bytes,
            "is_fragmented": need.is_fragmented,
        }
        if need
        else {"largest_request_bytes": one.map.temporary_bytes, "is_fragmented": False},
        "notes": list(one.map.notes),
    }


def _plan(one: MemoryPlan, card: str) -> dict[str, Any]:
    return {
        "gpu": one.gpu,
        "fits": one.chosen is not None,
        "answer": plan_headline(one, card),
        "samples": one.samples,
        "base": _option(one.base),
        "chosen": _option(one.chosen),
        "safe": _option(one.safe),
        "closest": _option(one.closest),
        "options": [_option(each) for each in one.options],
        "weighed": one.weighed,
        "recipe": recipe_document(one.recipe) if one.recipe else None,
        "reasons": one.reasons,
        "notes": list(one.notes),
        "sharding": to_builtins(one.sharding),
    }


def _option(one: PlannedOption | None) -> dict[str, Any] | None:
    if one is None:
        return None
    rest: dict[str, Any] = to_builtins(one)
    return {**rest.pop("option"), **rest}


def _log(log: Diagnosis, oom: OomReport | None) -> dict[str, Any]:
    """Return the sentences on what held the memory, and the report that they were read from."""
    report = to_builtins(oom) if oom else None
    if report is not None and oom:
        report |= {"room_bytes": oom.room_bytes, "is_fragmented": oom.is_fragmented}
    return {"memory": list(log.memory), "report": report}
