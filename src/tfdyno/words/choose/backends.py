"""TensorFlow and JAX side by side in words: the answer, and why a way is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import significant
from tfdyno.words.base.amounts import about_step, dashed
from tfdyno.words.base.language import say, say_later
from tfdyno.words.choose.advice import brief, fit_state

if TYPE_CHECKING:
    from tfdyno.core.base.interval import Interval
    from tfdyno.core.choose.backends import BackendsAnswer, BackendsOnCard, BackendStep
    from tfdyno.core.choose.estimate import Estimate

WAYS = {
    ("tensorflow", "graph"): say_later("TensorFlow, graph"),
    ("tensorflow", "xla"): say_later("TensorFlow, XLA"),
    ("jax", "xla"): say_later("Keras on JAX"),
}
_WITH = {
    "graph": say_later("TensorFlow in graph execution"),
    "xla": say_later("TensorFlow with XLA"),
}
_TOO_LARGE = ("no", "probably not")


def way_words(step: BackendStep) -> str:
    """Write ``TensorFlow, XLA``."""
    return say(WAYS[step.backend, step.execution])


def backends_headline(found: BackendsAnswer) -> str:
    """Return the answer for the first card in one sentence or two."""
    return card_words(found, found.cards[0])


def card_words(found: BackendsAnswer, card: BackendsOnCard) -> str:
    """Return the answer for one card: which is faster as far as that can be told, or why not."""
    jax = card.step("jax", "xla")
    name = brief(card.gpu_name)
    if jax.estimate is None:
        return say("JAX cannot run {title}: {why}.", title=found.title, why=why_words(jax))
    if card.baseline is None or card.speed_ratio is None:
        return say("Nothing on {card} compares with JAX.", card=name)
    other = card.step("tensorflow", card.baseline).estimate
    assert other
    told = {
        "title": found.title, "batch": found.batch_size, "card": name,
        "other": say(_WITH[card.baseline]),
        "ratio": ratio_words(card.speed_ratio),
        "bounds": dashed(card.speed_ratio.low, card.speed_ratio.high),
        "jax": about_step(jax.estimate.step_s)[0], "tensorflow": about_step(other.step_s)[0],
    }  # fmt: skip
    return say(
        "{title} at batch {batch:,} on {card}: no difference that can be told between JAX and "
        "{other}, about {jax} and {tensorflow} a step; their ranges overlap."
        if card.verdict == "no_difference"
        else "{title} at batch {batch:,} on {card}: JAX would be slower, {ratio} times as fast "
        "({bounds}) as {other}: about {jax} a step against {tensorflow}."
        if card.verdict == "slower"
        else "{title} at batch {batch:,} on {card}: JAX would be {ratio} times as fast ({bounds}) "
        "as {other}: about {jax} a step against {tensorflow}.",
        **told,
    ) + _memory_words(jax.estimate, other)


def verdict_heading(card: BackendsOnCard) -> str:
    """Return the answer for a card in a few words."""
    ratio = ratio_words(card.speed_ratio) if card.speed_ratio else ""
    return {
        "faster": say("JAX would be {ratio} times as fast", ratio=ratio),
        "slower": say("JAX would be {ratio} times as fast", ratio=ratio),
        "no_difference": say("No difference that can be told"),
        "unknown": say("JAX cannot run it")
        if card.step("jax", "xla").estimate is None
        else say("Nothing compares with JAX"),
    }[card.verdict]


def ratio_words(ratio: Interval) -> str:
    """Write ``1.3``, ``2.0``; two digits, as estimates have."""
    return f"{ratio.best:.1f}" if 1 <= ratio.best < 9.95 else significant(ratio.best, 2)


def why_words(step: BackendStep) -> str:
    """Return why the step cannot run so, without a stop."""
    if step.obstacle == "script":
        return say(
            "{file}, line {line}, {name}: {why}",
            file=step.file,
            line=step.line,
            name=step.names,
            why=step.why,
        )
    if step.obstacle == "step":
        return say("a step function is TensorFlow's own")
    if step.obstacle == "outside_xla":
        return say("it uses {names}, which exists outside of XLA only", names=step.names)
    if step.obstacle == "wheel":
        return say(
            "XLA of the official wheel fails on compute capability {names}", names=step.names
        )
    return step.names


def first_step_words(step: BackendStep) -> str:
    """Return what XLA needs to compile the first step; empty where it does not compile."""
    one = step.estimate
    if one is None or one.execution != "xla":
        return ""
    seconds = one.compile_s
    return say(
        "{best} s ({bounds})",
        best=significant(seconds.best, 2),
        bounds=dashed(seconds.low, seconds.high),
    )


def _memory_words(jax: Estimate, other: Estimate) -> str:
    """Say where the step does not fit the card; empty: it fits in both ways."""
    states = [fit_state(one) in _TOO_LARGE for one in (jax, other)]
    if states == [True, False]:
        return say(" By its estimate it does not fit the card on JAX.")
    if states == [False, True]:
        return say(" By its estimate it does not fit the card on TensorFlow.")
    return say(" By its estimate it fits the card in neither.") if all(states) else ""
