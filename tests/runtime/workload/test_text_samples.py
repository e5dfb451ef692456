"""Files of text as samples."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload.text_samples import read_samples

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_line_is_a_sample_and_an_empty_one_none(tmp_path: Path) -> None:
    found = read_samples(written(tmp_path, "a.txt", "one\n\n two \r\n   \nthree"))
    assert found.texts == ("one", " two ", "three")
    assert (found.classes, found.labels) == ((), ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'Review,Sentiment\n"good, really",pos\nbad,neg\n,pos\nfine,pos\n'),
        ("a.tsv", "label\ttext\npos\tgood, really\nneg\tbad\npos\t\npos\tfine\n"),
        ("a.jsonl", '{"text": "good, really", "label": "pos"}\n\n{"text": "bad", "label": "neg"}\n'
                    '{"text": " ", "label": "pos"}\n{"label": "pos", "text": "fine"}\n'),
    ],
)  # fmt: skip
def test_a_table_has_texts_and_classes_whatever_its_form(
    tmp_path: Path, name: str, text: str
) -> None:
    found = read_samples(written(tmp_path, name, text))
    assert found.texts == ("good, really", "bad", "fine")
    assert (found.classes, found.labels) == (("neg", "pos"), (1, 0, 1))


def test_numbers_of_classes_are_in_the_order_of_their_size(tmp_path: Path) -> None:
    table = written(tmp_path, "a.csv", "text,label\na,10\nb,2\nc,0\n")
    assert read_samples(table).classes == ("0", "2", "10")
    assert read_samples(table).labels == (2, 1, 0)


def test_the_only_column_is_the_text_whatever_it_is_called(tmp_path: Path) -> None:
    assert read_samples(written(tmp_path, "a.csv", "verse\nroses\n")).texts == ("roses",)


def test_a_text_may_be_longer_than_a_field_of_csv_may_by_default(tmp_path: Path) -> None:
    found = read_samples(written(tmp_path, "a.csv", f"text\n{'w' * 200_000}\n"))
    assert len(found.texts[0]) == 200_000


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip), min_size=1))
def test_what_json_holds_comes_back(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    lines = "\n".join(json.dumps({"text": one}) for one in texts)
    path = written(tmp_path_factory.mktemp("texts"), "a.jsonl", lines)
    assert read_samples(path).texts == tuple(texts)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "\n \n", "holds no text; give a file with a sample in each line."),
        ("a.csv", "title,stars\nx,1\n", "has no column of text: its columns are title, stars;"),
        ("a.csv", "text,label\nx,\n", "line 2 of PATH has no label."),
        ("a.csv", "label,text\nx\n", "line 2 of PATH has no text."),
        ("a.jsonl", "{'text': 1}\n", "line 1 of PATH is not JSON: Expecting property name"),
        ("a.jsonl", "[1]\n", "line 1 of PATH holds no object of JSON."),
        ("a.jsonl", '{"text": 5}\n', "line 1 of PATH has no text."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    tmp_path: Path, name: str, text: str, told: str
) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(UsageError) as error:
        read_samples(path)
    assert told.replace("PATH", str(path)) in str(error.value)


def test_bytes_that_are_no_text_and_a_missing_file_are_one_sentence_each(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    for name in ("a.txt", "b.txt"):
        with pytest.raises(UsageError, match=f"{name} cannot be read: "):
            read_samples(tmp_path / name)
