"""What each setting of a recipe means, in the words of its file and of ``tfdyno recipe``."""

from __future__ import annotations

MEANINGS = {
    "precision": (
        "Dtype policy of the layers (mixed_bfloat16, mixed_float16, float32, …), tf32, or float8 "
        "for Dense and EinsumDense; empty: the script's own."
    ),
    "execution": "xla compiles the step, graph runs it by operation; auto: what Keras chooses.",
    "batch_size": "Samples of a step on each device; 0: the script's own.",
    "accumulation": "Batches for each update of the weights.",
    "remat": (
        "What the backward pass computes again instead of keeping it: blocks, the bytes that "
        "activations may take as 8GiB, or names of layers as block1_*,head; empty: nothing."
    ),
    "ema": "Momentum of the moving average of the weights, under 1; 0: the optimizer's own.",
    "ema_overwrite": "Updates after which the average replaces the weights; 0: only at the end.",
    "clip_norm": "Largest norm of all gradients together; 0: the optimizer's own.",
    "loss_scale": "Fixed factor of the loss under mixed_float16; 0: found while training.",
    "steps_per_execution": "Steps for each call from Python.",
    "strategy": (
        "single, mirrored, multiworker, ps (parameter server) or tpu (untested); empty: the "
        "script's own."
    ),
    "devices": (
        "Cards or processes of the strategy, logical CPU devices without a card; 0: all cards, "
        "or 2."
    ),
    "memory_growth": "true: TensorFlow takes a card's memory as it needs it, not at once.",
    "memory_limit_bytes": "Bytes of each card that TensorFlow may take; 0: all that is free.",
    "memory_fraction": "Part of each card's memory for TensorFlow, to 1; 0: all that is free.",
    "visible_devices": "Cards by number of nvidia-smi, as 0,1; -1 for none; empty: all.",
    "threads_intra": "CPU threads of one operation; 0: TensorFlow chooses.",
    "threads_inter": "Operations that run on the CPU at once; 0: TensorFlow chooses.",
    "deterministic": "true: the same numbers in every run, at some cost of speed.",
    "seed": "Of Python's, NumPy's and TensorFlow's random numbers; none: drawn anew.",
    "retreat": "true: where XLA itself fails to compile, run again with less of it; false: fail.",
    "input.prefetch": (
        "Batches made ready ahead; -1: TensorFlow chooses; 0: as the pipeline has it."
    ),
    "input.parallel_calls": (
        "Elements that each map works on at once; -1: TensorFlow chooses; 0: as it has it."
    ),
    "input.cache": "true: what the pipeline makes in the first epoch stays in memory.",
    "input.shuffle_buffer": "Elements that each shuffle draws from; 0: as the pipeline has it.",
    "input.deterministic": (
        "Whether parallel work keeps the order of the elements; none: as the pipeline has it."
    ),
    "input.private_threads": "CPU threads of the pipeline alone; 0: it shares TensorFlow's.",
}
"""A sentence for each setting, by its flat name."""

UNITS = {
    "batch_size": "samples",
    "accumulation": "batches",
    "ema_overwrite": "updates",
    "steps_per_execution": "steps",
    "threads_intra": "threads",
    "threads_inter": "operations",
    "input.prefetch": "batches",
    "input.parallel_calls": "elements",
    "input.shuffle_buffer": "elements",
    "input.private_threads": "threads",
}
"""What numbers count, by the flat name of their setting; bytes are written with their own unit."""
