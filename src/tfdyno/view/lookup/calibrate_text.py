"""What a sweep found of a card: the verdict first, then its rates and what was left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.core.choose.card_file import CPU
from tfdyno.view.base.text import WIDTH, pairs, table, wrapped
from tfdyno.words.base.amounts import percent, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.card_file import CardFile, SweptKernel, Verdict

NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
MOST_LEFT_OUT = 4


def calibrate_text(
    card: CardFile, found: Verdict, *, notes: Sequence[str], takes_effect: bool, width: int = WIDTH,
    colour: bool = False,
) -> str:  # fmt: skip
    """Return the answer for a terminal."""
    parts = [wrapped(_headline(card, found), width=width)]
    if found.compared:
        rows = [[one.what, str(one.kernels), f"{one.speed_ratio:.2f}"] for one in found.compared]
        head = ["kernels", "number", "speed over expected"]
        parts.append(table(head, rows, align="lrr", width=width, colour=colour))
    parts.append(pairs(_facts(card, takes_effect), width=width))
    reasons = [wrapped(f"- {one}", width=width, rest="  ") for one in found.reasons]
    if reasons:
        title = "Because:" if found.grade == "slower" else "Note:"
        parts.append("\n".join([title, *reasons]))
    parts += [wrapped(note, width=width) for note in notes]
    return "\n\n".join(parts)


def _headline(card: CardFile, found: Verdict) -> str:
    if card.card == CPU:
        many = plural(card.processors, "processor")
        return (
            f"{card.name}, {many}: measured. No data sheet says how fast TensorFlow should be on "
            "them, so there is no verdict on the processors themselves."
        )
    if found.grade == "as it should":
        return f"{card.name} is as fast as its data sheet and other cards of its kind say."
    if found.grade == "slower":
        worst = min(found.compared, key=lambda one: one.speed_ratio)
        why = "" if found.reasons else " NVML names no reason."
        speed = percent(worst.speed_ratio)
        return (
            f"{card.name} is slower than it should be: {worst.what} at {speed} of what is "
            f"expected.{why}"
        )
    return f"{card.name}: measured, but not judged: nothing says how fast such a card should be."


def _facts(card: CardFile, takes_effect: bool) -> list[tuple[str, str]]:
    state, pace = card.condition, card.pace
    used = "estimate, advise, diagnose and tune use it from now on" if takes_effect else ""
    clock = f"{format_si(state.clock_hz, 'Hz')} under load" if state.clock_hz else ""
    power = f"{state.power_w:.0f} W under load" if state.power_w else ""
    if power and state.power_limit_w:
        power += f", limit {state.power_limit_w:.0f} W"
    load = state.other_cpu_ratio
    return [
        *_rates(card),
        ("a call", f"{pace.call_s * 1e6:.0f} µs from the host" if pace.call_s else ""),
        ("fit", f"{pace.beside_step_s * 1e6:.0f} µs beside a step" if pace.beside_step_s else ""),
        ("to the card", _rate(pace.to_card_bytes_per_s)),
        ("from the card", _rate(pace.from_card_bytes_per_s)),
        ("exchange", _rate(pace.exchange_bytes_per_s)),
        ("clock", clock),
        ("power", power),
        ("others", f"used {percent(load)} of the processors meanwhile" if load else ""),
        ("measured", f"{len(card.kernels)} kernels in {card.sweep_s:.0f} s, {card.software}, "
                     f"{card.made_on}"),
        ("left out", _left_out(card)),
        ("used by", used),
    ]  # fmt: skip


def _rates(card: CardFile) -> list[tuple[str, str]]:
    """Return the best rate of each kind that was measured."""
    found: dict[str, float] = {}
    for one in card.kernels:
        kind = {"gemm": "products", "convolution": "convolutions"}.get(one.kernel.kind)
        if kind:
            name = f"{kind}, {'TF32' if one.tf32 else NAMES.get(one.kernel.dtype, '')}"
            found[name] = max(found.get(name, 0.0), one.kernel.flops.fixed / one.kernel_s)
    told = [(name, f"{format_si(rate, 'FLOP/s')} at best") for name, rate in sorted(found.items())]
    moving = [one for one in card.kernels if one.kernel.kind == "loop"]
    largest = max(moving, key=_moved, default=None)
    if largest is not None:
        told.append(("memory", f"{_rate(_moved(largest) / largest.kernel_s)} in the largest sweep"))
        least = min(one.kernel_s for one in moving)
        told.append(("a kernel", f"{least * 1e6:.2g} µs at least"))
    return told


def _moved(one: SweptKernel) -> float:
    return one.kernel.read_bytes.fixed + one.kernel.write_bytes.fixed


def _rate(bytes_per_s: float) -> str:
    return f"{format_bytes(bytes_per_s)}/s" if bytes_per_s else ""


def _left_out(card: CardFile) -> str:
    names = card.left_out
    if not names:
        return ""
    more = f" and {len(names) - MOST_LEFT_OUT} more" if len(names) > MOST_LEFT_OUT else ""
    return f"{'; '.join(names[:MOST_LEFT_OUT])}{more}"


def calibrate_document(
    card: CardFile, found: Verdict, *, path: str, notes: Sequence[str], takes_effect: bool
) -> dict[str, Any]:
    """Return the answer as JSON."""
    return {
        "card": card, "verdict": found, "path": path, "takes_effect": takes_effect,
        "notes": list(notes),
    }  # fmt: skip
