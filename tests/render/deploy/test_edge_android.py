"""Kotlin for the model: buffers of its sizes, its names, and its own scales."""

from __future__ import annotations

from dataclasses import replace

from tests.view.edge_reports import REPORT, SCORES

from tfdyno.render.deploy.edge_android import android_page


def test_buffers_have_the_sizes_of_the_ports() -> None:
    page = android_page(REPORT, ())
    assert "fun run(image: FloatArray, tokenIds: IntArray): Map<String, FloatArray> {" in page
    assert "val imageIn = ByteBuffer.allocateDirect(784)" in page  # 28 x 28 bytes
    assert "val tokenIdsIn = ByteBuffer.allocateDirect(64)" in page  # 16 x 4
    assert "val scoresOut = ByteBuffer.allocateDirect(40)" in page  # 10 x 4
    assert "for (v in tokenIds) tokenIdsIn.putInt(v)" in page
    assert page.count(".rewind()") == 3


def test_real_values_are_quantised_with_the_models_scale() -> None:
    page = android_page(REPORT, ())
    assert "Math.round(v / 0.004f + (-128)).coerceIn(-128, 127).toByte()" in page
    quantised = replace(SCORES, dtype="uint8", scale=0.5, zero_point=3)
    page = android_page(replace(REPORT, outputs=(quantised,)), ())
    assert "((scoresOut.get(i)).toInt() and 255) - (3)) * 0.5f" in page


def test_a_file_without_signature_is_called_by_places() -> None:
    page = android_page(replace(REPORT, signature=""), ())
    assert (
        "runForMultipleInputsOutputs(arrayOf(imageIn, tokenIdsIn), mapOf(0 to scoresOut))" in page
    )


def test_what_the_gpu_lacks_is_named() -> None:
    assert "does not have GELU, MEAN" in android_page(REPORT, ("GELU", "MEAN"))
    assert "has all operators of this model" in android_page(REPORT, ())


def test_text_has_no_buffer_and_that_is_said() -> None:
    words = replace(SCORES, dtype="string")
    assert "takes or gives string" in android_page(replace(REPORT, outputs=(words,)), ())
