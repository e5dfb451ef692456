"""The folder of a language model in transformers on PyTorch, compared. Runs as a child.

In a process of its own: PyTorch's compiler and TensorFlow's hold one library in two versions, and
the second that is imported ends the process.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import ToolError
from tfdyno.core.deploy.export import Verification
from tfdyno.core.messages.export import COMPARE_IN_TRANSFORMERS, TOKENS_FILE
from tfdyno.process.child import Progress, leave, serve
from tfdyno.process.failure import first_line
from tfdyno.runtime.export.compare import Judge

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Module
    from tfdyno.core.messages.export import CompareOnTorch

TOKENS, MASK = "token_ids", "padding_mask"


def handle(request: CompareOnTorch, progress: Progress) -> Verification:
    """Load the folder, run the kept tokens through it, and compare every score.

    Raises:
        ToolError: It does not load or run, or its tokenizer is another.
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
    progress("comparing the tokenizers")
    _check_tokens(transformers, request)
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


def _check_tokens(transformers: Module, request: CompareOnTorch) -> None:
    """Raise ``ToolError`` where the folder's tokenizer makes other numbers of the same text."""
    kept = json.loads((request.kept / TOKENS_FILE).read_bytes())
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(request.folder), local_files_only=True
        )
        found = tokenizer(kept["text"], add_special_tokens=False)["input_ids"]
    except Exception as error:
        raise ToolError("transformers cannot load the tokenizer that was written",
                        why=first_line(error)) from None  # fmt: skip
    if found != kept["numbers"]:
        raise ToolError(
            f"in transformers the tokenizer makes other numbers of '{kept['text']}'",
            why=f"{found} in place of {kept['numbers']}",
        )


if __name__ == "__main__":
    leave(serve(handle, COMPARE_IN_TRANSFORMERS))
