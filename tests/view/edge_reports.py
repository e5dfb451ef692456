"""A small answer of ``tfdyno edge``, by hand."""

from __future__ import annotations

from tfdyno.core.deploy.edge import EdgeNeed, EdgePort, EdgeReport, EdgeTiming, EdgeVerdict

NEED = EdgeNeed(
    file_bytes=4968, weight_bytes=832, live_bytes=10816, arena_bytes=52000,
    peak_operator="MUL of norm", float_arithmetic=0, integer_arithmetic=776_000, moved_bytes=60_000,
    port_bytes=800, operators=8, table_operators=8, tensors=20,
    kinds=("CONV_2D", "SOFTMAX"), custom=(), open_batch=True, loops_unknown=False,
)  # fmt: skip
IMAGE = EdgePort(
    name="image", index=0, dtype="int8", shape=(1, 28, 28, 1), open_axes=(0,), scale=0.004,
    zero_point=-128,
)  # fmt: skip
TOKENS = EdgePort(name="token_ids", index=1, dtype="int32", shape=(1, 16), open_axes=(0,))
SCORES = EdgePort(name="scores", index=0, dtype="float32", shape=(1, 10), open_axes=(0,))
FITS = EdgeVerdict(
    device="pi", name="Pi", runtime="LiteRT", fits=True, storage_needed_bytes=4968,
    storage_bytes=0, memory_needed_bytes=8_000_000, memory_bytes=4 * 2**30, unsupported=(),
    latency_s=(2e-6, 0.00021), latency_class="real_time", best_class="real_time",
    bound_by="dispatch", obstacles=(), advice=("Nothing to do.",), source="made up",
)  # fmt: skip
LACKS = EdgeVerdict(
    device="chip", name="Chip", runtime="LiteRT for Microcontrollers", fits=False,
    storage_needed_bytes=70_000, storage_bytes=2**20, memory_needed_bytes=17_000,
    memory_bytes=2**18, unsupported=("GELU",), latency_s=(0.02, 0.25), latency_class="batch",
    best_class="real_time", bound_by="compute", obstacles=("Micro has no GELU.",), advice=(),
    source="made up",
)  # fmt: skip
REPORT = EdgeReport(
    model="m.tflite", need=NEED, inputs=(IMAGE, TOKENS), outputs=(SCORES,),
    signature="serving_default", float_operators=("SIN of wave",), cpu="A CPU",
    timings=(
        EdgeTiming(threads=1, median_s=0.0042, interval_s=(0.004, 0.005), rounds=9, calls=1234),
    ),
    verdicts=(FITS, LACKS),
)  # fmt: skip
