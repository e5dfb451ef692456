"""render/deploy/tensorrt: scripts that a shell and a Python read, with the model's profile."""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING

from tfdyno.core.deploy.export import Signature, TensorInfo
from tfdyno.render.deploy.tensorrt import python_script, shell_script, sizes

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = TensorInfo(name="image", dtype="float32", shape=(None, 28, 28, 1))
WORDS = TensorInfo(name="words", dtype="int32", shape=(None, None))
FIXED = TensorInfo(name="row", dtype="float32", shape=(4, 2))


def signature(*inputs: TensorInfo) -> Signature:
    return Signature(inputs=inputs, outputs=())


def test_the_profile_takes_batches_of_1_to_64() -> None:
    script = shell_script(signature(PICTURE, WORDS))
    assert "--minShapes=image:1x28x28x1,words:1x1" in script
    assert "--optShapes=image:32x28x28x1,words:32x128" in script
    assert "--maxShapes=image:64x28x28x1,words:64x512" in script


def test_a_fixed_shape_has_no_profile() -> None:
    assert "Shapes" not in shell_script(signature(FIXED))
    assert "PROFILES = [\n]" in python_script(signature(FIXED))
    assert sizes(FIXED, 64) == (4, 2)


def test_the_shell_reads_its_script_and_says_what_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "build_engine.sh"
    script.write_text(shell_script(signature(PICTURE)))
    done = subprocess.run(["/bin/sh", str(script)], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin"})  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "trtexec is not on PATH" in done.stderr


def test_the_shell_gives_trtexec_its_flags(tmp_path: Path) -> None:
    (tmp_path / "trtexec").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "trtexec").chmod(0o755)
    script = tmp_path / "build_engine.sh"
    script.write_text(shell_script(signature(PICTURE)))

    def given(**env: str) -> list[str]:
        paths = {"PATH": f"{tmp_path}:/usr/bin:/bin", **env}
        words = ["/bin/sh", str(script), "--verbose"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=paths)
        return done.stdout.splitlines()

    assert given()[0] == "--onnx=model.onnx"
    assert given()[-2:] == ["--fp16", "--verbose"]
    assert given(TRTEXEC_FLAGS="")[-2:] == ["--maxShapes=image:64x28x28x1", "--verbose"]


def test_the_python_script_is_python() -> None:
    tree = ast.parse(python_script(signature(PICTURE)))
    [profiles] = [one for one in tree.body if isinstance(one, ast.Assign)
                  and ast.unparse(one.targets[0]) == "PROFILES"]  # fmt: skip
    assert ast.literal_eval(profiles.value) == [
        ("image", (1, 28, 28, 1), (32, 28, 28, 1), (64, 28, 28, 1))
    ]
