"""``tfdyno edge`` on the command line: its table, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfdyno.catalog.edge_devices import all_devices
from tfdyno.cli.main import main

DATA = Path(__file__).parents[1].parent / "data" / "litert"
CNN = str(DATA / "cnn.tflite")


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["edge", *words])
    return code, *capsys.readouterr()


def test_a_table_names_devices_and_classes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, CNN, "--seconds", "0.01", "-q")
    assert code == 0  # nobody asked for the device that it does not fit
    assert "Measured by LiteRT on this CPU" in out
    assert "2 threads" in out
    assert "esp32-s3: LiteRT for Microcontrollers has no GELU." in " ".join(out.split())
    assert "raspberry-pi-5" in out
    assert "none was measured there" in " ".join(out.split())
    doubted = sum(bool(device.unverified) for device in all_devices())
    assert f"Figures of {doubted} devices are unverified (*)" in " ".join(out.split())


def test_json_has_every_device(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, CNN, "--json", "--no-measure", "-q", "--device", "boards")
    found = json.loads(out)
    assert code == 0
    assert [one["device"] for one in found["devices"]] == [
        "raspberry-pi-4", "raspberry-pi-5", "raspberry-pi-zero-2",
    ]  # fmt: skip
    assert found["devices"][0]["latency_s"]["low"] < found["devices"][0]["latency_s"]["high"]
    assert found["timings"] == []
    assert found["inputs"][0]["name"] == "image"


def test_a_device_that_it_does_not_fit_is_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, CNN, "--no-measure", "-q", "--device", "nrf52840")
    assert code == 1
    assert "nrf52840 *  no" in out


def test_the_page_is_written_and_a_place_that_cannot_be_is_told_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "edge.html"
    assert called(capsys, CNN, "--seconds", "0.01", "-q", "--html", str(page))[0] == 0
    assert "Bars of the time of a call on this CPU" in page.read_text(encoding="utf-8")
    code, _, told = called(capsys, CNN, "-q", "--html", str(tmp_path / "none" / "edge.html"))
    assert code == 2
    assert "none" in told


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "--list")
    assert code == 0
    assert "jetson-orin-nx-16gb" in out
    found = json.loads(called(capsys, "--list", "--json")[1])
    assert all(one["source"] for one in found["devices"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no model was named"),
        (("nowhere.tflite",), "nowhere.tflite does not exist"),
        ((CNN, "--device", "esp32"), "--no"),
        ((CNN, "--device", "esp33-s3"), "did you mean esp32-s3?"),
        ((CNN, "--threads", "0"), "threads 0 is not possible"),
        ((CNN, "--threads", "1000"), "1000 threads are too many"),
        ((CNN, "--seconds", "nan"), "seconds"),
        ((CNN, "--write", str(DATA)), "exists already"),
    ],
)
def test_wrong_use_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    if told == "--no":  # a part of one name is enough
        assert called(capsys, *words, "--no-measure", "-q")[0] == 1
        return
    code, out, err = called(capsys, *words)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1
