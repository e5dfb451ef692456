from __future__ import annotations

import json

from tests.rules.migration.code import found, notes


def book(*cells: str, kind: str = "code") -> str:
    return json.dumps(
        {"cells": [{"cell_type": kind, "source": cell.splitlines(True)} for cell in cells]}
    )


def test_a_notebook_is_read_cell_by_cell_and_evidence_names_the_cell() -> None:
    match = found(
        book("import tensorflow as tf", "%matplotlib inline\n\ns = tf.Session()"), name="n.ipynb"
    )
    evidence = match["tf1_session"].evidence[0]
    assert (evidence.source, evidence.text.split("  →")[0]) == (
        "n.ipynb, cell 2, line 3",
        "s = tf.Session()",
    )


def test_magic_lines_and_cells_do_not_stop_the_reading() -> None:
    cells = (
        "%%time\nimport tensorflow as tf",
        "!nvidia-smi\nif x:\n    !ls {x}\ntf.Session?",
        "%%html\n<b>tensorflow</b>",
        "tf.Session()",
    )
    assert found(book(*cells), name="n.ipynb").keys() == {"tf1_session"}
    assert notes("n.ipynb", book(*cells)) == ()


def test_installing_in_a_notebook_is_looked_at() -> None:
    for cell in (
        "!pip install -q tensorflow-gpu",
        "%pip install tensorflow-gpu>=2.4",
        "%%bash\npip install tensorflow-gpu",
    ):
        match = found(book("import tensorflow", cell), name="n.ipynb")
        assert match["tensorflow_gpu"].evidence[0].source.startswith("n.ipynb, cell 2, line ")


def test_a_broken_cell_is_a_note_and_the_others_are_read() -> None:
    source = book("import tensorflow as tf", "def f(:", "tf.Session()")
    assert notes("n.ipynb", source) == ("n.ipynb, cell 2 was not read: line 1: invalid syntax.",)
    assert "tf1_session" in found(source, name="n.ipynb")


def test_markdown_is_not_code_and_old_notebooks_have_worksheets() -> None:
    assert (
        found(book("import tensorflow as tf\ntf.Session()", kind="markdown"), name="n.ipynb") == {}
    )
    old = {
        "worksheets": [
            {"cells": [{"cell_type": "code", "input": "from tensorflow import Session"}]}
        ]
    }
    assert "tf1_session" in found(json.dumps(old), name="n.ipynb")


def test_a_cell_that_imports_anew_is_taken_for_a_restarted_kernel() -> None:
    late = 'import os\nos.environ["KERAS_BACKEND"] = "jax"\n'
    again = found(book("import keras", late + "import keras"), name="n.ipynb")
    assert "backend_after_import" not in again
    assert "backend_after_import" in found(book("import keras", late), name="n.ipynb")
