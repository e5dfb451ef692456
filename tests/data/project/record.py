"""How the documents of this folder were made: ``python record.py FOLDER`` makes them anew in FOLDER.

Each is what the command printed with ``--json`` on two CPUs that other programs used as well: the
figures are good for tests of words and pages, not for anything else. What is changed after: the
machine's name, paths of FOLDER, and the single latencies of all stretches of the load test but the
one that counts. Takes ten minutes, the extra ``tune`` and the environment of ``tfdyno serve --setup``.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
TFDYNO = [sys.executable, "-m", "tfdyno"]
FEW = ["--runs", "5", "--max-runs", "5", "--seconds", "20", "--output", "results"]
STEPS = {
    "advise": ["advise", "shapes.py", "--epochs", "6", "--gpu", "l4,t4,a100-sxm4-80gb",
               "--count", "1", "--provider", "aws,gcp"],
    "estimate": ["estimate", "shapes.py", "--gpu", "l4"],
    "bench": ["bench", "shapes.py", *FEW],
    "bench-fast": ["bench", "shapes.py", *FEW, "--", "--fast"],
    "diagnose": ["diagnose", "shapes.py", "--seconds", "6", "--fix", "--output", "results"],
    "train": ["train", "shapes.py", "--output", "run"],
    "export": ["export", "run/model.keras", "--to", "onnx,litert-int8", "--output", "exported",
               "--data", "shapes.py:rows", "--max-accuracy-drop", "1%"],
    "models": ["models", "add", "exported/model.onnx", "--name", "shapes", "--store", "store"],
    "edge": ["edge", "exported/model.tflite", "--device", "phone,microcontroller"],
    "size": ["advise", "shapes.py", "--scenario", "serve", "--requests-per-day", "1000000",
             "--p99-ms", "50", "--gpu", "l4,t4"],
    "tune": ["tune", "sums.py", "--trials", "2", "--runs", "2", "--seconds", "1", "--keep-batch",
             "--output", "tuned", "--space", "execution=own", "--space", "precision=own",
             "--space", "steps_per_execution=1,8"],
}  # fmt: skip


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for script in ("shapes.py", "sums.py"):
        shutil.copy(HERE / script, folder)
    for name, words in STEPS.items():
        before, separator, after = " ".join(words).partition(" -- ")
        asked = [*before.split(), "--json", *(["--", *after.split()] if separator else [])]
        write(folder, name, run(asked, folder))
    write(folder, "load", load_test(folder))


def run(words, folder):
    done = subprocess.run([*TFDYNO, *words], cwd=folder, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def load_test(folder):
    """The exported model, served and asked."""
    words = ["serve", "run/model.keras", "--name", "shapes", "--port", "0"]
    with (folder / "serve.out").open("w") as out:
        server = subprocess.Popen([*TFDYNO, *words], cwd=folder, stdout=out)
    try:
        while not (said := (folder / "serve.out").read_text().split()):
            time.sleep(0.5)
        return run(["bench", "--serve", said[1], "--p99-ms", "50", "--seconds", "3", "--json"],
                   folder)  # fmt: skip
    finally:
        server.terminate()
        server.wait()


def write(folder, name, document):
    (HERE / f"{name}.json").write_text(tidied(document, folder) + "\n")


def tidied(document, folder):
    """Without the machine's name, paths of the folder, and what nobody looks at."""
    stages = document.get("stages", []) if "knee_rate_per_s" in document else []
    counts = max(
        (one for one in stages if one["holds"]),
        key=lambda one: one["run"]["plan"]["rate_per_s"], default=None,
    )  # fmt: skip
    for stage in stages:
        for name in ("start_s", "latency_s", "codes") if stage is not counts else ():
            stage["run"][name] = []
    text = json.dumps(document, ensure_ascii=False)
    text = text.replace(f"{folder.resolve()}{os.sep}", "").replace(str(folder.resolve()), ".")
    return text.replace(f'"host": "{platform.node()}"', '"host": "desk"')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
