from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tfdyno.core.doctor.machine_facts import Distribution, MachineFacts, PythonFacts
from tfdyno.probe.base.host import Host
from tfdyno.probe.python.requirements import (
    broken_requirements,
    markers,
    plainly_met,
    required,
    requirements,
)

LINUX = markers(Host(system="linux"), MachineFacts(python=PythonFacts(version="3.11.9")))


def broken(lines: list[str], **have: str) -> list[str]:
    names = {name.replace("_", "-"): version for name, version in have.items()}
    installed = {name: Distribution(name=name, version=one) for name, one in names.items()}
    return list(broken_requirements(lines, installed, LINUX))


def test_a_version_outside_the_range_is_named_with_what_is_there() -> None:
    assert broken(["numpy<2.2.0,>=1.26.0"], numpy="2.3.1") == [
        "numpy<2.2.0,>=1.26.0 (installed 2.3.1)"
    ]
    assert broken(["numpy<2.2.0,>=1.26.0"], numpy="2.1.3") == []


def test_names_are_compared_normalised_and_development_versions_count() -> None:
    assert broken(["ml_dtypes>=0.5.1"], ml_dtypes="0.6.0.dev1") == []


def test_markers_are_those_of_the_other_interpreter() -> None:
    lines = ['a>=1; python_version < "3.12"', 'b>=1; sys_platform == "win32"']
    assert broken(lines) == ["a>=1 (not installed)"]


def test_cuda_packages_count_only_where_they_are_installed() -> None:
    line = 'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"'
    assert broken([line]) == []
    assert broken([line], nvidia_cudnn_cu12="9.5.1.17") == []
    assert broken([line], nvidia_cudnn_cu12="9.1.0.70") == [
        "nvidia-cudnn-cu12<10.0,>=9.3.0.75 (installed 9.1.0.70)"
    ]


def test_versions_and_lines_that_are_none_are_passed_over() -> None:
    assert broken(["numpy<2", "!!! nonsense"], numpy="mystery") == []


def test_only_the_head_of_the_metadata_counts() -> None:
    text = "Name: x\r\nRequires-Dist: a>=1\r\n\r\nRequires-Dist: b\r\n"
    assert required(text) == ["a>=1"]


def test_without_tensorflow_it_is_not_run() -> None:
    part = requirements(Host(python="/no/bin/python"), MachineFacts())
    assert (part.state, part.reason) == ("not_run", "TensorFlow is not installed for this Python")


versions = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda n: ".".join(map(str, n)))
bounds = st.tuples(st.sampled_from([">=", "<=", "==", "!=", ">", "<", "~="]), versions).map("".join)


@given(version=versions, specifiers=st.lists(bounds, max_size=3).map(",".join))
def test_plain_numbers_say_what_packaging_says(version: str, specifiers: str) -> None:
    closer_look = "~=" in specifiers
    if not closer_look:
        assert plainly_met(f"x{specifiers}", version) == (version in SpecifierSet(specifiers))
    else:
        assert not plainly_met(f"x{specifiers}", version)


def test_what_is_not_plain_is_left_to_packaging() -> None:
    for requirement, version in [
        ("x<6.0.0dev,>=3", "4.0"), ("x==2.*", "2.1"), ("x>=1", "2.0rc1"), ("x>=1", "2.0+cu118"),
        ("x[y]>=1", "2.0"), ("x @ file:///y", "2.0"), ("x>=1 nonsense", "2.0"),
    ]:  # fmt: skip
        assert not plainly_met(requirement, version)
