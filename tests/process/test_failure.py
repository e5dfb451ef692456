"""What the user's code did wrong is told in one sentence with its own file and line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.process.failure import Declined, first_line, place, user_code

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

LOST = Path(__file__).parents[1] / "data" / "lost_worker"
Run = Callable[[str], TfdynoError]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run source text as a file of the user's; returns the error that it became."""

    def run(source: str) -> TfdynoError:
        path = tmp_path / "train.py"
        path.write_text(source)
        with pytest.raises(TfdynoError) as told, user_code("train.py"):
            exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
        return told.value

    return run


def test_an_exception_is_told_with_its_line_and_lets_the_other_path_try(
    run: Run, tmp_path: Path
) -> None:
    error = run("def build():\n    raise ValueError('too deep\\nsecond line')\n\nbuild()\n")
    assert isinstance(error, Declined)
    assert str(error) == (
        f"train.py failed: {tmp_path / 'train.py'}, line 2: ValueError: too deep."
    )


def test_a_missing_package_names_the_interpreter(run: Run) -> None:
    error = run("import no_such_package_of_anyone")
    assert isinstance(error, UsageError)
    assert (
        error.why == f"the package no_such_package_of_anyone is not installed for {sys.executable}"
    )
    assert error.remedy.endswith("or name an interpreter that has it with --python")


def test_a_missing_horovod_is_to_be_taken_out_not_installed() -> None:
    with pytest.raises(UsageError) as raised, user_code("train.py:build"):
        raise ModuleNotFoundError("No module named 'horovod'", name="horovod")
    assert raised.value.remedy == "take it out of the script: tfdyno migrate train.py"


def test_code_that_is_no_python_is_told_with_its_line(run: Run, tmp_path: Path) -> None:
    error = run("x = 1\ndef f(:\n")
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"train.py is not valid Python: {tmp_path / 'train.py'}, line 2: ")


def test_a_missing_file_is_named_with_the_line_that_opens_it(run: Run, tmp_path: Path) -> None:
    error = run("x = 1\nopen('data.csv')\n")
    assert isinstance(error, UsageError)
    assert error.what == "train.py needs the file 'data.csv'"
    assert error.why == f"{tmp_path / 'train.py'}, line 2"


@pytest.mark.parametrize(
    ("source", "why", "remedy"),
    [
        ("raise SystemExit(3)", "it ended with exit code 3", ""),
        ("raise SystemExit('no data')", "it ended with 'no data'", ""),
        (
            "import sys\nprint('error: --data is required', file=sys.stderr)\nsys.exit(2)",
            "it ended with exit code 2 after printing 'error: --data is required'",
            "give its own arguments after --",
        ),
    ],
)
def test_a_script_that_ends_itself_is_told_with_its_last_words(
    source: str, why: str, remedy: str, run: Run
) -> None:
    error = run(source)
    assert isinstance(error, UsageError)
    assert error.what == "train.py stopped before there was a model"
    assert (error.why, error.remedy) == (why, remedy)


def test_what_the_code_prints_still_reaches_the_terminal(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import sys\nprint('loading', file=sys.stderr)\nraise ValueError('x')")
    assert capsys.readouterr().err == "loading\n"


def test_code_that_asks_for_a_gpu_is_told_that_none_is_shown(run: Run) -> None:
    error = run("gpus = []\nfirst = gpus[0]\n")
    assert (
        error.remedy
        == "no GPU is shown to the code here: let it go on without one, as in 'if gpus:'"
    )
    assert run("cards = []\nfirst = cards[0]\n").remedy == ""


def test_a_sentence_of_the_tool_itself_passes_unchanged() -> None:
    own = ToolError("the traced program has no main function")
    with pytest.raises(ToolError) as told, user_code("train.py"):
        raise own
    assert told.value is own


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        ("\n\n  first \nsecond", "first"),
        ("\x1b[1mbold\x1b[0m words", "bold words"),
        (
            "Exception encountered when calling Dense.call().\n\nshapes differ\n\nArguments:",
            "Exception encountered when calling Dense.call(). shapes differ",
        ),
        (
            "in user code:\n\n    File 'a.py', line 3\n    ValueError: no such key\n",
            "ValueError: no such key",
        ),
        ("x" * 400, "x" * 300),
        ("what follows:\nis told", "what follows: is told"),
        (
            "Graph execution error:\n\nDetected at node div defined at (most recent call last):\n"
            "<stack traces unavailable>\nDetected at node add defined at (most recent call last):\n"
            "<stack traces unavailable>\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  too deep"
            "\n\t [[{{node div}}]]\n  (1) CANCELLED:  too late\n",
            "too deep",
        ),
        (
            "{{function_node __wrapped__Div}} Integer division by zero [Op:Div]",
            "Integer division by zero [Op:Div]",
        ),
    ],
)
def test_the_first_line_that_says_something_is_kept(message: str, line: str) -> None:
    assert first_line(ValueError(message)) == line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("killed_within_a_step", "Collective ops is aborted by: Socket closed"),
        ("worker_0_killed", "Collective ops is aborted by: recvmsg:Connection reset by peer"),
        (
            "killed_between_steps",
            "Collective ops is aborted by: Error reported from /job:worker/task:1: The following "
            "tasks are unhealthy (stopped sending heartbeats): /job:worker/replica:0/task:1",
        ),
    ],
)
def test_what_tensorflow_says_of_a_lost_worker_is_told(name: str, line: str) -> None:
    assert first_line(ValueError((LOST / f"{name}.txt").read_text())) == line


@pytest.mark.tf
def test_what_tensorflow_says_of_a_failed_function_is_told() -> None:
    import tensorflow as tf

    @tf.function(autograph=False)
    def divided(value: Value) -> Value:
        return 1 // value

    with pytest.raises(tf.errors.InvalidArgumentError) as told:
        divided(tf.constant(0))
    assert str(told.value).startswith("Graph execution error:")
    assert first_line(told.value) == "Integer division by zero"


def test_a_failure_inside_a_library_is_placed_in_the_users_code() -> None:
    with pytest.raises(LookupError) as told:
        "".encode("no-such-codec")
    assert place(told.value).startswith(f"{__file__}, line ")
    assert place(ValueError("never raised")) == ""
