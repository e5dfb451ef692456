"""The folder of a language model in transformers on PyTorch, compared. Runs as a child.

In a process of its own: PyTorch's compiler and TensorFlow's hold one library in two versions, and
the second that is imported ends the process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import ToolError
from tfdyno.core.deploy.export import Verification
from tfdyno.core.messages.export import COMPARE_IN_TRANSFORMERS
from tfdyno.process.child import Progress, leave, serve
from tfdyno.process.failure import first_line
from tfdyno.runtime.export.compare import Judge

if TYPE_CHECKING:
    from tfdyno.core.messages.export import CompareOnTorch

TOKENS, MASK = "token_ids", "padding_mask"


def handle(request: CompareOnTorch, progress: Progress) -> Verification:
    """Load the folder, run the kept tokens through it, and compare every score.

    Raises:
        ToolError: It does not load or run.
    """
    progress("importing transformers")
    import torch
    import transformers

    progress("loading the folder in transformers")
    try:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            str(request.folder), dtype=torch.float32, local_files_only=True
        )
    except Exception as error:
        raise ToolError("transformers cannot load the huggingface that was written",
                        why=first_line(error)) from None  # fmt: skip
    given, expected = (
        dict(np.load(request.kept / f"{name}.npz")) for name in ("inputs", "outputs")
    )
    [name] = request.outputs
    judge = Judge((name,), request.known.judged, None, request.known.amounts)
    progress("comparing in transformers")
    tokens, mask = (torch.from_numpy(given[one].astype(np.int64)) for one in (TOKENS, MASK))
    try:
        with torch.no_grad():
            scores = model(input_ids=tokens, attention_mask=mask).logits
    except Exception as error:
        raise ToolError("the huggingface that was written does not run in transformers",
                        why=first_line(error)) from None  # fmt: skip
    judge.add(0, expected, {name: np.asarray(scores)})
    return Verification(
        data=request.known.data,
        rows=len(tokens),
        runner=f"transformers {transformers.__version__} on PyTorch {torch.__version__}",
        differences=tuple(
            replace(one, output=f"{one.output} in transformers") for one in judge.differences()
        ),
    )


if __name__ == "__main__":
    leave(serve(handle, COMPARE_IN_TRANSFORMERS))
