from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.codec import to_json
from tfdyno.core.doctor.machine_facts import Distribution, GpuFacts, MachineFacts, PythonFacts
from tfdyno.probe.machine.record import read_environment, save_environment
from tfdyno.probe.machine.redact import COMMON, Identity, identity_of, redact_facts, redactor

if TYPE_CHECKING:
    from pathlib import Path

ALICE = Identity(users=("alice",), hosts=("gpu-box-7",), homes=("/srv/people/alice",))
HIDDEN = [
    ("/srv/people/alice/work/train.py", "~/…"),
    ("/home/bob/work/train.py, line 3", "~/…, line 3"),
    (r"C:\Users\John Smith\tf\Lib\site-packages\keras\x.py", r"~/Lib\site-packages\keras\x.py"),
    ("/mnt/c/Users/bob/x", "~/…"),
    (
        "/scratch/p42/env/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
        "<path>/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
    ),
    ("LD_LIBRARY_PATH=/scratch/me/cuda/lib64:/usr/lib", "LD_LIBRARY_PATH=<path>/lib64:/usr/lib"),
    ("/opt/conda/envs/merger/lib", "/opt/conda/envs/<env>/lib"),
    (r"D:\data\merger\a.py", "<path>\\…"),
    (r"\\fileserver\merger\a", r"\\<host>\<path>\a"),
    ("https://bob:hunter2@pkgs.corp.example/simple", "https://<secret>@<host>"),
    ("https://wiki.corp.example/merger", "https://<host>"),
    ("WANDB_API_KEY=abc123 next", "WANDB_API_KEY=<secret> next"),
    ('{"hf_token": "abc def"}', '{"hf_token": <secret>}'),
    ("--password hunter2 --x", "--password <secret> --x"),
    ("Authorization: Bearer abc.def", "Authorization: <secret> <secret>"),
    ("using ghp_0123456789abcdef", "using <secret>"),
    ("connect to 10.1.2.3:2222, fe80::1", "connect to <ip>:2222, <ip>"),
    ("ether 0a:1b:2c:3d:4e:5f", "ether <mac>"),
    ("mail a.b@c.org", "mail <email>"),
    ("Alice on GPU-BOX-7", "<user> on <host>"),
    ("GPU-8f6e2a1c-1111-2222-3333-444455556666, GPU-8f6e2a1c", "GPU-<1>, GPU-<1>"),
    ('{"cluster": {"worker": ["node17:2222", "n18:2222"]}}',
     '{"cluster": {"worker": ["<host>:2222", "<host>:2222"]}}'),
]  # fmt: skip
KEPT = [
    "2023-01-01 12:30:45.123456: I tensorflow/core/x.cc:980] 10:20:30 done",
    "/usr/local/cuda-12.5/lib64/libcudart.so.12",
    "nvidia-cublas-cu12==12.5.3.2 (installed 12.4.5.8)",
    "/job:localhost/replica:0/task:0/device:GPU:0",
    "pciBusID: 0000:01:00.0 name: NVIDIA GeForce RTX 4090 computeCapability: 8.9",
    "see https://www.tensorflow.org/install/gpu",
    "std::vector tokens per second: 12, libcudnn.so.9.1.0",
    "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "/usr/lib/libcudnn.so.9: 9.1.0.70, libcudnn.so.9 9.1.0.70",
]


@pytest.mark.parametrize(("text", "expected"), HIDDEN)
def test_what_is_private_becomes_a_placeholder(text: str, expected: str) -> None:
    if text.startswith("Authorization"):
        assert "abc" not in redactor(ALICE)(text)
    else:
        assert redactor(ALICE)(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_what_a_reader_needs_stays(text: str) -> None:
    assert redactor(ALICE)(text) == text


def test_a_private_key_goes_whole() -> None:
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\nb"
    assert redactor(ALICE)(text) == "a\n<key>\nb"


names = st.text(string.ascii_lowercase + string.digits, min_size=5, max_size=12).filter(
    lambda one: one not in COMMON and one[0].isalpha() and not one.isalpha()
)
surroundings = st.sampled_from(["", "I tensorflow/core/x.cc:98] ", "Loaded cuDNN 9.1\n", "(", '"'])
plants = st.sampled_from(
    [
        "/home/{}/x.py",
        "/scratch/{}/data", "/mnt/c/Users/{}/x", "C:\\Users\\{}\\x", "/data/{}/a/b",
        "E:\\{}\\y.txt", "https://{}:pw@example.com/x", "https://u:{}@example.com/x",
        "MY_TOKEN={}", "password: {}", "AWS_SECRET_ACCESS_KEY='{}'", "http://{}.corp/x",
        '"api_key": "{}"', "https://github.com/x?access_token={}", "{}@example.com", "x@{}.org",
        "--token {}", "ghp_{}000000", "Authorization: Bearer {}", "grpc://{}:2222",
        '"cluster": {{"worker": ["{}:2222"]}}', "\\\\{}\\share\\x",
    ]
)  # fmt: skip


@given(secret=names, plant=plants, before=surroundings, after=surroundings)
def test_a_planted_secret_never_survives(secret: str, plant: str, before: str, after: str) -> None:
    assert secret not in redactor(Identity())(f"{before} {plant.format(secret)} {after}")


@given(secret=names, text=st.text(max_size=40))
def test_names_of_the_account_and_the_machine_never_survive(secret: str, text: str) -> None:
    for identity in (Identity(users=(secret,)), Identity(hosts=(secret,))):
        assert secret not in redactor(identity)(text + secret.upper() + secret + text).lower()


@given(
    octets=st.tuples(*[st.integers(0, 255)] * 4), tail=st.sampled_from(["", ":8470", " up", ")"])
)
def test_addresses_never_survive(octets: tuple[int, ...], tail: str) -> None:
    address = ".".join(map(str, octets))
    assert address not in redactor(Identity())(f"peer {address}{tail}")


@given(value=st.uuids())
def test_cards_never_survive(value: object) -> None:
    assert str(value) not in redactor(Identity())(f"CUDA_VISIBLE_DEVICES=GPU-{value},MIG-{value}")


@given(text=st.text(max_size=200))
def test_any_text_is_redacted_and_stays_so(text: str) -> None:
    once = redactor(ALICE)(text)
    assert redactor(ALICE)(once) == once


def test_facts_keep_what_a_diagnosis_needs(tmp_path: Path) -> None:
    uuid = "GPU-8f6e2a1c-1111-2222-3333-444455556666"
    site = "/home/alice/env/lib/python3.11/site-packages"
    package = Distribution(name="nvidia-cublas-cu12", version="12.5.3.2", folder=f"{site}/x")
    facts = MachineFacts(
        system="linux",
        environment={"CUDA_VISIBLE_DEVICES": uuid, "TF_API_TOKEN": "abc", "TF_X": "10.0.0.7"},
        python=PythonFacts(prefix="/home/alice/env", distributions=(package,)),
        gpus=(GpuFacts(name="NVIDIA A40", uuid=uuid),),
        cuda="12.5.1",
    )
    hidden = redact_facts(facts, ALICE)
    assert hidden.python.distributions[0].version == "12.5.3.2"
    assert hidden.environment["CUDA_VISIBLE_DEVICES"] == (hidden.gpus or ())[0].uuid
    assert hidden.environment["TF_API_TOKEN"] == "<secret>"
    assert hidden.environment["TF_X"] == "<ip>"
    assert "alice" not in to_json(hidden).decode()
    save_environment(tmp_path / "env.json", facts, ALICE)
    assert read_environment(tmp_path / "env.json") == hidden


def test_the_identity_comes_from_variables_and_the_kernel() -> None:
    given_names = {"USER": "alice", "HOME": "/home/alice", "COMPUTERNAME": "BOX"}
    identity = identity_of(given_names, "node3.corp.example")
    assert identity.users == ("alice",)
    assert set(identity.hosts) == {"node3.corp.example", "BOX", "node3"}
    assert identity.homes == ("/home/alice",)
