"""Facts of any kind, also such as no training gives: every field drawn by chance."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import (
    OPERATION_CLASSES,
    CallbackFacts,
    CallFacts,
    CardFacts,
    FitsFacts,
    GrowthFacts,
    HostFacts,
    InputFacts,
    OperationFacts,
    RetraceFacts,
    StageFacts,
    StepFacts,
)

seconds = st.one_of(st.just(0.0), st.floats(1e-9, 10.0), st.sampled_from((1e-5, 1e-3, 0.02, 0.5)))
times = st.one_of(
    seconds.map(lambda one: (one,) * 9), st.lists(seconds, min_size=1, max_size=30).map(tuple)
)
ratios = st.floats(0.0, 1.5)
counts = st.sampled_from((0, 1, 2, 7, 32, 100, 1000, 10**6))
sizes = st.sampled_from((0, 1, 4096, 10**6, 10**9, 10**12))
places = st.sampled_from(("", "train.py:41"))
NAMES = ("DecodeJpeg", "EagerPyFunc", "RandomUniform", "ReadFile", "TFRecordDataset", "Mul")
KINDS = (
    "map", "batch", "shuffle", "from_generator", "interleave", "prefetch", "cache", "tf_record",
    "tensor_slice", "repeat", "flat_map",
)  # fmt: skip

stages = st.builds(
    StageFacts, title=st.sampled_from(KINDS).map(lambda kind: f"{kind}(f)"), place=places,
    kind=st.sampled_from(KINDS), own_s=seconds, parallel_calls=st.integers(-1, 9),
    runs_python=st.booleans(), buffer_size=counts, output_bytes=sizes, elements=st.just(0.0),
    operations=st.lists(st.sampled_from(NAMES), max_size=3).map(tuple), keeps_order=st.booleans(),
)  # fmt: skip
inputs = st.builds(
    InputFacts, batch_s=st.one_of(st.just(()), times), batch_bytes=sizes, samples_per_epoch=counts,
    stages=st.lists(stages, max_size=5).map(tuple),
    kind=st.sampled_from(("dataset", "arrays", "generator", "pydataset", "other")),
    prefetches=st.booleans(), is_cached=st.booleans(), cpu_ratio=ratios,
    read_bytes_per_s=st.floats(0, 1e10), files=counts, start_s=seconds,
    workers=st.sampled_from((0, 1, 4)),
)  # fmt: skip
callbacks = st.builds(
    CallbackFacts, place=places, per_step_s=seconds, per_epoch_s=seconds,
    name=st.sampled_from(("validation", "ModelCheckpoint", "TensorBoard", "Own")),
)  # fmt: skip
calls = st.builds(
    CallFacts, steps=st.integers(1, 9), single_s=st.one_of(st.just(()), times), together_s=times
)
DIFFERS = ("", "argument x: shape (32, 8) -> (31, 8)", "argument step: 3 -> 4",
           "argument x: float32 -> float64", "a new tf.function for each call",
           "a new dataset for each call",
           "a new iterator over several devices for each call")  # fmt: skip
retraces = st.builds(
    RetraceFacts, function=st.sampled_from(("f", "train_step")), place=places, traces=counts,
    calls=counts, seconds_s=seconds, differs=st.sampled_from(DIFFERS),
    callback=st.sampled_from(("", "Own")),
)  # fmt: skip
growths = st.builds(
    GrowthFacts, where=st.sampled_from(("host", "device")), bytes_per_step=st.floats(-1e6, 1e9),
    low_bytes_per_step=st.floats(-1e6, 1e9),
    suspects=st.sampled_from(((), ("list of 9 tensors held by train.py:31 (losses)",))),
    kind=st.sampled_from(("tensors", "functions", "logs", "iterators", "objects", "unknown")),
)  # fmt: skip
slopes = st.lists(st.floats(-1e6, 1e9), min_size=3, max_size=3).map(sorted)
fits = st.builds(
    lambda slope, **told: FitsFacts(
        low_bytes_per_fit=slope[0], bytes_per_fit=slope[1], high_bytes_per_fit=slope[2], **told
    ),
    slope=slopes, fits=st.integers(1, 40), counted_by=st.sampled_from(("kernel", "allocator")),
    begin_bytes=st.just((1, 2)), models=st.just((2, 3)), free_bytes=sizes, is_told=st.booleans(),
    place=places,
)  # fmt: skip
TITLES = ("m/dense/MatMul", "PyFunc", "numpy_function", "m/Mul")
operations = st.builds(
    OperationFacts,
    class_s=st.dictionaries(st.sampled_from(OPERATION_CLASSES), seconds, max_size=6),
    count_per_step=st.sampled_from((0.0, 1.0, 40.0, 900.0, 1e5)), busy_s=seconds, float64_s=seconds,
    host_only=st.sampled_from(((), ("Unique (m/u): 30% of the step", "Where (m/w): 90%"))),
    copied_bytes=st.floats(0, 1e9), copy_s=seconds, collective_exposed_s=seconds,
    collective_hidden_s=seconds,
    collectives_per_step=st.sampled_from([0.0, 1.0, 96.0]),
    largest=st.lists(st.tuples(st.sampled_from(TITLES), seconds), max_size=3).map(tuple),
)  # fmt: skip
hosts = st.builds(
    HostFacts, cpus=st.integers(0, 64), usable_cpus=st.floats(0.0, 64.0),
    threads_intra=st.integers(0, 64), threads_inter=st.integers(0, 64), cpu_ratio=ratios,
    other_cpu_ratio=ratios, throttled_ratio=ratios, offered_cpus=st.floats(0.0, 64.0),
    children_cpu_ratio=ratios, memory_free_bytes=sizes,
)  # fmt: skip
cards = st.builds(
    CardFacts, busy_ratio=st.floats(0, 1),
    power_w=st.floats(0, 700), power_limit_w=st.floats(0, 700),
    clock_hz=st.floats(0, 2e9), clock_limit_hz=st.floats(0, 2e9), lowered_ratio=st.floats(0, 1),
    reasons=st.sampled_from((("power_cap",), ("thermal",))), other_memory_bytes=sizes,
)  # fmt: skip
splits: st.SearchStrategy[dict[str, float]] = st.one_of(
    st.just({}), st.dictionaries(st.sampled_from(SPLIT_PARTS), seconds, min_size=1, max_size=6)
)


def several(one: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    """None to some of them."""
    return st.lists(one, max_size=most).map(tuple)


any_facts = st.builds(
    StepFacts, title=st.just("train.py"), device=st.sampled_from(("cpu", "gpu")),
    source=st.sampled_from(("run", "loop", "profile", "record")), batch_size=counts,
    replica_count=st.sampled_from((0, 1, 2, 8)), worker_count=st.sampled_from((0, 1, 2)),
    precision=st.sampled_from(("float32", "", "mixed_float16", "mixed_bfloat16", "float64")),
    execution=st.sampled_from(("xla", "graph", "eager")), steps_per_execution=st.integers(1, 9),
    parameter_bytes=sizes, variable_count=counts, steps_per_epoch=counts, epochs=counts,
    steps_seen=counts, steps_watched=counts, step_s=times,
    held_s=st.one_of(st.just(()), times), callback_s=seconds,
    python_s=seconds, waits_s=seconds, input=st.one_of(st.none(), inputs),
    calls=st.one_of(st.none(), calls), fits=st.one_of(st.none(), fits),
    epoch_ends_s=seconds, epoch_saves_s=seconds,
    callbacks=several(callbacks), retraces=several(retraces), growth=several(growths),
    operations=st.one_of(st.none(), operations), host=hosts,
    float64=st.sampled_from(((), ("dense/kernel", "input x"), ("input x",))),
    devices=st.dictionaries(st.sampled_from(("CPU:0", "CPU:1", "GPU:0")), st.integers(0, 9)),
    python_threads=several(st.tuples(st.just("train.py:9"), ratios)),
    python_lines=several(st.tuples(st.just("train.py:31"), seconds)),
    python_texts=st.sampled_from(({}, {"train.py:31": "value = float(loss)"})),
    python_steps=st.sampled_from(((), ("numpy_function in train.py:20",), ("run_eagerly",))),
    step_flops=st.floats(0, 1e15), peak_flops_per_s=st.sampled_from((0.0, 1e9, 1e15)),
    peak_bytes_per_s=st.floats(0, 1e12), memory_used_bytes=sizes, memory_limit_bytes=sizes,
    compute_capability=st.sampled_from(("", "6.1", "7.5", "8.0")),
    unaligned=st.sampled_from(((), ("dense_1: 1001 units",))),
    worker_step_s=st.lists(seconds, max_size=4).map(tuple), split_s=splits, cards=several(cards),
).filter(lambda facts: any(facts.step_s)).map(  # a profile that tells the split has no held steps
    lambda facts: replace(facts, held_s=()) if facts.split_s else facts
)  # fmt: skip
