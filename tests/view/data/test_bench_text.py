"""A measured pipeline as terminal text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.feeds import feed
from tests.view.feeds_told import A100, told

from tfdyno.view.data.bench_text import data_bench_text

TEXT = """\
net gives 200 samples/s (190–210) on 2 CPUs: they are full and set the pace.
tf.data, batches of 10, 9.77 KiB each; 10.0 ms of a CPU for each sample; 200
kB/s of files, all in memory (warm).

stage               at          gives/s       out  per sample  share  could/s
from_tensor_slices                  200  200 kB/s     10.0 µs   0.1%    100 k
shuffle                             200  200 kB/s     30.0 µs   0.3%     33 k
map(load)           train.py:9      200  200 kB/s     9.50 ms    95%      110
batch                                20  200 kB/s      460 µs     5%    2.2 k
prefetch                             20  200 kB/s           –      –        –

Limits
  the 2 CPUs       200 samples/s if they did nothing else; 1 CPU gave 110, all
                   1.82 times that
  one thread       2,170 samples/s, with any number of CPUs: batch
  the disk         1,000 samples/s: 1 MB/s in order, 10 MB/s from memory (100
                   files, 97.7 KiB on ext4)
  files forgotten  40 samples/s (30–50) while 50% of the bytes came from the
                   disk

To feed a GPU at batch 10, by the quick estimate of its step
GPU      step  needs/s  9 in 10  CPUs  9 in 10  fed here
A100  25.0 ms      400  300–500     4  2.8–5.4      0.50
These 2 CPUs feed 0.50 of an A100 (0.40–0.67); it needs 4 of them.

Wrote feed.json.
Next: tfdyno advise train.py --feed feed.json"""


def test_the_whole_answer_in_80_columns() -> None:
    assert data_bench_text(told(), written="feed.json") == TEXT


@pytest.mark.parametrize("width", [60, 100])
def test_no_line_is_longer_than_the_screen(width: int) -> None:
    lines = data_bench_text(told(), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_parts_that_are_not_known_are_left_out() -> None:
    text = data_bench_text(told(stages=(), needs=(), cold_per_s=None))
    assert "stage  " not in text
    assert "To feed" not in text
    assert "Wrote" not in text
    assert "files forgotten" not in text


def test_of_many_cards_only_those_that_nothing_feeds_have_a_sentence() -> None:
    beyond = replace(A100, gpu_name="H100", cpus=(None, None, None))
    text = data_bench_text(told(needs=(A100, A100, A100, beyond)))
    assert text.count("These 2 CPUs feed") == 1
    assert "of an H100 (0.40–0.67); no number of CPUs feeds it" in text


def test_data_alone_names_no_workload_to_advise_on() -> None:
    alone = told(feed=feed(reference="set/read_dataset.py:read"), needs=())
    assert data_bench_text(alone, written="f.json").endswith("tfdyno advise WORKLOAD --feed f.json")


def test_the_next_command_can_be_typed_as_it_stands() -> None:
    spaced = data_bench_text(told(feed=feed(reference="my run.py")), written="a b.json")
    assert spaced.endswith("Next: tfdyno advise 'my run.py' --feed 'a b.json'")
