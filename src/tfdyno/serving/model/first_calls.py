"""The first calls through Triton: they are slow, so none of them should be a client's."""

from __future__ import annotations

import http.client
import statistics
import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from tfdyno.process.failure import first_line
from tfdyno.serving.address import connection
from tfdyno.serving.front.table import read_signature
from tfdyno.serving.front.wire import ModelError, decode, encode, error_text
from tfdyno.serving.model.saved import fitting_free_size, made_up

if TYPE_CHECKING:
    from tfdyno.core.messages.serve import SignatureFacts
    from tfdyno.serving.front.wire import Arrays
    from tfdyno.serving.model.saved import Signature

SLOW_CALLS = 2
"""So many go before those that are timed."""
TIMED_CALLS = 5
LONGEST_S = 1.0
"""The time after which no further call is made: a model that takes longer is known well enough."""
WAIT_S = 120.0
"""The time for one answer."""


def first_call_s(address: str, signature: Signature, described: SignatureFacts) -> float:
    """Ask Triton for one made-up sample a few times.

    Args:
        address: Of Triton's HTTP.
        signature: To make the sample for.
        described: The signature as the front reads it.

    Returns:
        Median seconds of the later calls; 0.0 where no sample can be made up or Triton refuses it.
    """
    free, why = fitting_free_size(signature)
    if why or not free:
        return 0.0
    try:
        return _timed(address, made_up(signature.inputs, 1, free), described)
    except (OSError, http.client.HTTPException, ValueError, KeyError, ModelError) as error:
        print(f"{signature.name}: no first call: {first_line(error)}", file=sys.stderr)
        return 0.0


def _timed(address: str, sample: Arrays, described: SignatureFacts) -> float:
    face = read_signature(described)
    head, blobs = encode([sample], face)
    path = f"/v2/models/{described.triton_model}/infer"
    headers = {"Inference-Header-Content-Length": str(len(head))}
    asked = connection(address, timeout_s=WAIT_S)
    taken_s: list[float] = []
    end_s = time.perf_counter() + LONGEST_S
    try:
        while len(taken_s) < SLOW_CALLS + TIMED_CALLS:
            began_s = time.perf_counter()
            asked.request("POST", path, body=b"".join([head, *blobs]), headers=headers)
            answer = asked.getresponse()
            body = answer.read()
            if answer.status != HTTPStatus.OK:
                raise ValueError(error_text(body))
            head_bytes = int(answer.headers.get("Inference-Header-Content-Length") or len(body))
            decode(body, head_bytes, face)
            taken_s.append(time.perf_counter() - began_s)
            if time.perf_counter() > end_s:
                break
    finally:
        asked.close()
    return statistics.median(taken_s[SLOW_CALLS:] or taken_s[-1:])
