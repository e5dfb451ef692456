"""Parts of a Keras model that can be recomputed: blocks that repeat, or cuts of its graph."""

from __future__ import annotations

import difflib
import fnmatch
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras_internals import inner_layers
from tfdyno.runtime.remat.functional import Functional, float_bytes
from tfdyno.runtime.remat.plan import Part, Segment, blocks, peak_bytes, segments
from tfdyno.runtime.remat.trace import Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tfdyno.core.base.untyped import Layer, Model, Operation


_PREFERRED = 1.1
"""Blocks that a person made are taken unless a cut of the graph is better by more than this."""
_FINER = 0.95
"""Smaller blocks are taken where they lower the peak below this share."""


@dataclass(slots=True)
class Cut:
    """A way to divide a model: whole layers, or segments of functional models, or both."""

    layers: dict[str, Any] = field(default_factory=dict)
    """The layers by the name of the block."""
    segments: list[tuple[Functional, list[Segment]]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    """The forward pass in its order; without a trace, the blocks alone."""

    @property
    def peak_bytes(self) -> int:
        """Most bytes of activations with every block recomputed."""
        return peak_bytes(self.parts, blocks(self.parts))


@dataclass(slots=True, kw_only=True)
class Subject:
    """A model with what is known of a step of it."""

    model: Any
    functionals: list[Functional]
    traced: Traced | None
    batch_size: int


def composites(model: Model) -> list[Any]:
    """Return layers that hold two or more layers with weights, outer ones before inner ones."""
    inner = inner_layers(model)
    return [layer for layer in inner if is_composite(layer)]


def is_composite(layer: Layer) -> bool:
    """Return whether a layer holds two or more layers with weights of their own."""
    inner = inner_layers(layer)
    return sum(bool(x._trainable_variables or x._non_trainable_variables) for x in inner) > 1


def repeated_blocks(subject: Subject) -> Cut | None:
    """Find composite layers of which a model has two or more of a kind; None: it has none.

    Of blocks within blocks the outer are taken, and the inner of those that make the peak where
    that lowers it.
    """
    found = composites(subject.model)
    counts = Counter(type(layer) for layer in found)
    able = {id(layer) for layer in found if counts[type(layer)] > 1}
    chosen = _outermost(subject.model, able)
    if not chosen:
        return None
    best = _layer_cut(subject, chosen)
    while subject.traced:
        kind = type(max(chosen, key=lambda layer: _kept(subject.traced, layer)))
        finer: dict[int, Any] = {}
        for layer in chosen:
            inner = _outermost(layer, able) if type(layer) is kind else []
            finer |= {id(each): each for each in inner or [layer]}
        cut = _layer_cut(subject, list(finer.values()))
        if cut.peak_bytes >= _FINER * best.peak_bytes:
            break
        chosen, best = list(finer.values()), cut
    return best


def graph_cut(subject: Subject) -> Cut | None:
    """Find functional models cut into segments; None: there is none.

    It is the one that keeps most, or each of them where models lie in models and that is better. A
    cut without segments: none lowers the peak.
    """
    most = max(subject.functionals, key=lambda each: _own_bytes(subject, each), default=None)
    if most is None:
        return None
    best = _segment_cut(subject, most, lambda _name: True)
    if subject.traced and len(subject.functionals) > 1:
        every = _joined(subject, [_own_cut(subject, each) for each in subject.functionals])
        best = min(best, every, key=lambda cut: cut.peak_bytes)
    return best


def _own_bytes(subject: Subject, functional: Functional) -> int:
    """Return what the operations of a functional model keep, but for the models among them."""
    own = [n for n, node in enumerate(functional.nodes) if not _holds_graph(node.operation)]
    return sum(_amounts(subject, functional, n)[0] for n in own)


def _own_cut(subject: Subject, functional: Functional) -> Cut:
    """Return a functional model cut between the models that it holds."""
    inner = {node.operation.name for node in functional.nodes if _holds_graph(node.operation)}
    return _segment_cut(subject, functional, lambda name: name not in inner)


def _joined(subject: Subject, cuts: Sequence[Cut]) -> Cut:
    """Return several cuts as one."""
    found = Cut(segments=[each for cut in cuts for each in cut.segments])
    found.parts = _parts(subject, found)
    return found


def best_cut(subject: Subject) -> Cut:
    """Return the better of both ways; without blocks if no cut of a functional model is lower.

    Raises:
        UsageError: The model has nothing that could be recomputed.
    """
    named, graph = repeated_blocks(subject), graph_cut(subject)
    if named and graph and subject.traced:
        return named if named.peak_bytes <= _PREFERRED * graph.peak_bytes else graph
    if found := named or graph:
        return found
    what = f"{subject.model.name} has no blocks to recompute"
    why = "no layer with layers inside comes twice, and it is no functional model"
    remedy = 'name layers, as remat = "dense_1,conv_*", or leave remat out'
    raise UsageError(what, why=why, remedy=remedy)


def named_cut(subject: Subject, patterns: Sequence[str]) -> Cut:
    """Return what name patterns choose; neighbours in a functional model are recomputed together.

    Raises:
        UsageError: A pattern fits nothing, or what is named keeps nothing that could be saved.
    """
    model = subject.model
    nodes = {n.operation.name: n.operation for f in subject.functionals for n in f.nodes}
    layers = [layer for layer in inner_layers(model) if layer.name]
    names = dict.fromkeys([*nodes, *(layer.name for layer in layers)])
    paths = [layer.path for layer in layers if layer.path]
    fits = _matcher(patterns, list(dict.fromkeys([*names, *paths])))
    matched = {id(layer) for layer in layers if fits(layer.name) or fits(layer.path or "")}
    whole = _outermost(model, matched)
    single = {layer.name for layer in whole if layer.name in nodes and not is_composite(layer)}
    single |= {name for name in nodes if fits(name) and id(nodes[name]) not in matched}
    single -= {layer.name for layer in layers if id(layer) in matched} - {x.name for x in whole}
    cut = _layer_cut(subject, [layer for layer in whole if layer.name not in single])
    for functional in subject.functionals:
        more = _segment_cut(subject, functional, single.__contains__, wanted=True)
        cut.segments += more.segments
    cut.parts = _parts(subject, cut)
    if not blocks(cut.parts):
        what = f"remat = {','.join(patterns)} saves nothing"
        why = "what these layers keep is what they pass on"
        raise UsageError(what, why=why, remedy="name more layers that follow each other")
    return cut


def _matcher(patterns: Sequence[str], names: Sequence[str]) -> Callable[[str], bool]:
    """Make a test whether any pattern fits a name; each must fit one of all names."""
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern, names, 3, 0.4)
            remedy = f"it has {', '.join(near)}" if near else f"it has {', '.join(names[:3])} ..."
            raise UsageError(f"remat names {pattern}, which no layer is called", remedy=remedy)
    return lambda name: any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _outermost(layer: Layer, able: set[int]) -> list[Any]:
    """Return layers inside a layer whose ids are given, but none inside another of them."""
    found: dict[int, Any] = {}
    for inner in layer._layers:
        if id(inner) in able:
            found[id(inner)] = inner
        else:
            found |= {id(each): each for each in _outermost(inner, able)}
    return list(found.values())


def _layer_cut(subject: Subject, layers: Iterable[Any]) -> Cut:
    cut = Cut()
    for layer in layers:
        name = layer.name
        if name in cut.layers:
            name = layer.path or name
        while name in cut.layers:
            name += "'"
        cut.layers[name] = layer
    cut.parts = _parts(subject, cut)
    return cut


def _segment_cut(
    subject: Subject,
    functional: Functional,
    allowed: Callable[[str], bool],
    *,
    wanted: bool = False,
) -> Cut:
    amounts = [_amounts(subject, functional, n) for n in range(len(functional.nodes))]
    kept, cost = [each[0] for each in amounts], [each[1] for each in amounts]
    steps = functional.steps(kept, cost, subject.batch_size, allowed)
    found = segments(steps, functional.results, wanted=wanted)
    cut = Cut(segments=[(functional, found)] if found else [])
    cut.parts = _parts(subject, cut)
    return cut


def _parts(subject: Subject, cut: Cut) -> list[Part]:
    """Return the whole forward pass in its order, with what lies between the blocks."""
    traced = subject.traced
    if traced is None:
        alone = [Part(name=name, kept_bytes=0) for name in cut.layers]
        return alone + [each.part for _, found in cut.segments for each in found]
    named = {id(layer): name for name, layer in cut.layers.items()}
    rows = [(x.first, x.last, named[x.key], x.passed_bytes) for x in traced.spans if x.key in named]
    for functional, found in cut.segments:
        for each in found:
            firsts = [x.first for x in traced.spans if x.key == (functional.key, each.first)]
            lasts = [x.last for x in traced.spans if x.key == (functional.key, each.last - 1)]
            passed = each.part.passed_bytes
            rows += [(a, b, each.part.name, passed) for a, b in zip(firsts, lasts, strict=True)]
    parts, done = [], 0
    for first, last, name, passed in [*sorted(rows), (traced.length, traced.length, "", 0)]:
        parts.append(Part(kept_bytes=traced.kept_bytes(done, first)))
        kept = max(traced.kept_bytes(first, last), passed)
        cost = traced.forward_flops(first, last)
        parts.append(Part(name=name, kept_bytes=kept, passed_bytes=passed, forward_flops=cost))
        done = last
    return [part for part in parts if part.name or part.kept_bytes]


def _kept(traced: Traced | None, layer: Layer) -> int:
    """Return most bytes that a call of a layer keeps."""
    spans = traced.spans if traced else []
    sizes = [traced.kept_bytes(x.first, x.last) for x in spans if x.key == id(layer)]  # type: ignore[union-attr]
    return max(sizes, default=0)


def _amounts(subject: Subject, functional: Functional, number: int) -> tuple[int, float]:
    """Return bytes kept by an operation and its computation; without a trace, what it gives."""
    if subject.traced is None:
        outputs = functional.nodes[number].outputs
        return sum(float_bytes(x, subject.batch_size) for x in outputs), 0.0
    spans = [x for x in subject.traced.spans if x.key == (functional.key, number)]
    kept = sum(subject.traced.kept_bytes(x.first, x.last) for x in spans)
    return kept, sum(subject.traced.forward_flops(x.first, x.last) for x in spans)


def _holds_graph(operation: Operation) -> bool:
    return hasattr(operation, "_functional") or hasattr(operation, "_nodes_by_depth")
