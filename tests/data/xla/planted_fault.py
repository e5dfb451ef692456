"""A training that XLA fails to compile, as it did on a GPU, until enough of XLA is left out.

Its first argument says what has to be left out; ``none``: nothing.
"""

import os
import signal
import sys
from pathlib import Path

import keras
import numpy as np

NEEDS = {
    "none": "",
    "triton": "--xla_gpu_enable_triton_gemm=false",
    "autotune": "--xla_gpu_autotune_level=0",
    "workers": "--xla_gpu_autotune_level=0",  # where Keras does not compile by itself, too
}
TILE = (
    "Failed to analyze the computation (Failed to compute symbolic tile for (d0, d1) -> (d1, d0))"
)
GEMM = "Autotuning failed for HLO: %cublas-gemm.1 = f32[8,8]{1,0} custom-call(%a, %b)"
fault = sys.argv[1]
own_error = "Detected unsupported operations when trying to compile graph step: StringLower"


def fail_as_xla() -> None:
    if NEEDS.get(fault, "no flag") in os.environ.get("XLA_FLAGS", ""):
        return
    if keras.backend.backend() == "jax":
        import jax

        raise jax.errors.JaxRuntimeError(f"INTERNAL: {GEMM}")
    import tensorflow as tf

    if fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "own":
        raise tf.errors.InvalidArgumentError(None, None, own_error)
    log = Path(__file__).with_name("symbolic_tile.log").read_text()
    print("\n".join(log[log.index("HloModule") :].splitlines()[:-1]), file=sys.stderr)
    raise tf.errors.InternalError(None, None, f"{TILE}\nHloModule gemm_fusion_MatMul.8")


class Net(keras.Sequential):
    """Fails where its train step would be compiled."""

    def train_step(self, *given):  # type: ignore[no-untyped-def]
        if fault == "workers":
            fail_as_xla()
        return super().train_step(*given)

    def make_train_function(self, force: bool = False) -> None:
        super().make_train_function(force)
        made = self.train_function

        def run(*given):  # type: ignore[no-untyped-def]
            if self.jit_compile:
                fail_as_xla()
            return made(*given)

        self.train_function = run


x = np.random.default_rng(0).normal(size=(320, 8)).astype("float32")
y = x.sum(1, keepdims=True)
model = Net([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("adam", "mse", jit_compile=True)
model.fit(x, y, epochs=2, batch_size=32)
