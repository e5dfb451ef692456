# ruff: noqa: E501
"""Packages, Python and systems: wordings of many tools and versions lead to their cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.choose.software import Release
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.jobs.machine.knowledge import capability_of, knowledge_of
from tfdyno.rules.causes import all_causes
from tfdyno.rules.explain import diagnose
from tfdyno.rules.log.explained import scan
from tfdyno.rules.refine.packages import numpy_requirement
from tfdyno.rules.told import machine_from_told, told_by_log

if TYPE_CHECKING:
    from tfdyno.core.doctor.finding import Finding

WINDOWS = {"os": "Windows 11"}
MAC = {"os": "macOS 14"}
ARM = {"os": "Ubuntu 22.04 aarch64"}
JETSON = {"os": "JetPack 5.1", "gpu": "Jetson Orin"}


def findings(log: str, **told: object) -> tuple[Finding, ...]:
    """What is found in a log of a machine of which a few words are told."""
    seen = scan([log], all_causes())
    facts = told_by_log(seen, machine_from_told(told, capability_of), capability_of)
    return diagnose(log=seen, facts=facts, knowledge=knowledge_of(facts)).findings


def causes(log: str, **told: object) -> list[str]:
    """Ids of the findings, the root first."""
    return [one.cause for one in findings(log, **told)]


def commands(finding: Finding) -> str:
    """All commands of a fix."""
    return "\n".join(step.command for step in finding.fix)


# fmt: off
WORDINGS = [
    ("py.no_wheel", "ERROR: No matching distribution found for tensorflow==2.9.3", {}),
    ("py.no_wheel", "ERROR: tensorflow-2.3.0-cp38-cp38-win_amd64.whl is not a supported wheel on this platform.", WINDOWS),
    ("py.no_wheel", "Because all versions of tensorflow have no wheels with a matching Python ABI tag (e.g., `cp314`) and you require tensorflow, we can conclude that your requirements are unsatisfiable.", {}),
    ("py.no_wheel", "  Unable to find installation candidates for tensorflow-intel (2.15.0)", WINDOWS),
    ("py.no_wheel", "UnsatisfiableError: The following specifications were found\n  - tensorflow-gpu -> python[version='3.5.*|3.6.*']\nYour python: python=3.9", {}),
    ("py.no_wheel", "PackagesNotFoundError: The following packages are not available from current channels:\n\n  - tensorflow=2.19", {}),
    ("py.wrong_interpreter", "ModuleNotFoundError: No module named 'tensorflow'", {}),
    ("pkg.tensorflow_gpu_removed", "Collecting tensorflow-gpu==2.12.0\n  Downloading tensorflow-gpu-2.12.0.tar.gz (2.6 kB)\nerror: metadata-generation-failed", {}),
    ("pkg.tensorflow_gpu_removed", "ERROR: Could not find a version that satisfies the requirement tensorflow-gpu==2.16.1 (from versions: 2.8.0, 2.12.0)", {}),
    ("pkg.cpu_only_build", "The requested device appears to be a GPU, but CUDA is not enabled.", {}),
    ("pkg.cpu_only_build", "tensorflow                2.4.1           mkl_py39h4683426_0", {}),
    ("pkg.cpu_only_build", "cuda = tf.sysconfig.get_build_info()['cuda_version']\nKeyError: 'cuda_version'", {}),
    ("pkg.mixed_install", "AttributeError: module 'tensorflow' has no attribute 'constant'", {}),
    ("pkg.mixed_install", "ImportError: cannot import name 'pywrap_dlopen_global_flags' from 'tensorflow.python' (unknown location)", {}),
    ("pkg.tf1_code", "AttributeError: module 'tensorflow' has no attribute 'Session'", {}),
    ("pkg.tf1_code", "ModuleNotFoundError: No module named 'tensorflow.contrib'", {}),
    ("pkg.numpy_abi", "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000", {}),
    ("pkg.numpy_abi", "AttributeError: module 'numpy' has no attribute 'object'.", {}),
    ("pkg.numpy_abi", "tensorflow-intel 2.12.0 requires numpy<1.24,>=1.22, but you have numpy 1.26.4 which is incompatible.", {}),
    ("pkg.protobuf_clash", "ImportError: cannot import name 'runtime_version' from 'google.protobuf' (/opt/google/protobuf/__init__.py)", {}),
    ("pkg.protobuf_clash", "tensorboard 2.10.1 requires protobuf<3.20,>=3.9.2, but you have protobuf 5.29.1 which is incompatible.", {}),
    ("pkg.keras_mismatch", "ModuleNotFoundError: No module named 'keras.engine.topology'", {}),
    ("pkg.keras_mismatch", "ImportError: `keras.optimizers.legacy` is not supported in Keras 3.", {}),
    ("pkg.keras_mismatch", "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: <tf_keras.src.layers.core.dense.Dense object at 0x1>", {}),
    ("pkg.keras_model_format", "ValueError: Unknown layer: 'DTypePolicy'. Please ensure you are using a `keras.utils.custom_object_scope`", {}),
    ("pkg.keras_model_format", "ValueError: Layer 'conv2d_3' expected 1 input(s). Received 2 instead.", {}),
    ("pkg.keras_model_format", "loaded = keras.models.load_model('m.h5')\nValueError: Unrecognized keyword arguments passed to DepthwiseConv2D: {'groups': 1}", {}),
    ("pkg.h5py_version", "in load_weights_from_hdf5_group\nAttributeError: 'str' object has no attribute 'decode'", {}),
    ("pkg.op_library_mismatch", "NotFoundError: /v/tensorflow_addons/custom_ops/image/_image_ops.so: undefined symbol: _ZNK10tensorflow8OpKernel4nameEv", {}),
    ("pkg.horovod_build", "NotFoundError: /v/horovod/tensorflow/mpi_lib.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN10tensorflow12OpDefBuilder4AttrESs", {}),
    ("pkg.dependency_clash", "import tensorflow as tf\nAttributeError: module 'ml_dtypes' has no attribute 'float8_e4m3b11'", {}),
    ("pkg.broken_import", "AttributeError: partially initialized module 'tensorflow' has no attribute 'keras' (most likely due to a circular import)", {}),
    ("win.native_no_gpu", "Num GPUs Available:  0", {**WINDOWS, "tf": "2.19.0"}),
    ("win.native_no_gpu", "tf.test.is_built_with_cuda() -> False", {**WINDOWS, "tf": "2.14.0"}),
    ("win.native_no_gpu", "OrderedDict([('is_cuda_build', False)])", {**WINDOWS, "python": "3.12"}),
    ("win.msvc_runtime", "ImportError: Could not find the DLL(s) 'msvcp140_1.dll'. TensorFlow requires that these DLLs be installed", WINDOWS),
    ("win.msvc_runtime", "ImportError: DLL load failed: The specified procedure could not be found.\nFailed to load the native TensorFlow runtime.", WINDOWS),
    ("win.long_path", "HINT: This error might have occurred since this system does not have Windows Long Path support enabled.", WINDOWS),
    ("arm.jetpack_mismatch", "ImportError: libcublas.so.11: cannot open shared object file: No such file or directory", JETSON),
    ("arm.no_gpu_wheel", "Num GPUs Available:  0", ARM),
    ("arm.no_gpu_wheel", "Built with CUDA: False", JETSON),
    ("mac.metal_unsupported_op", "NotFoundError: No registered 'StatelessRandomGetKeyCounter' OpKernel for 'GPU' devices compatible with node {{node x}}", MAC),
    ("mac.metal_plugin_mismatch", "dlopen(/p/tensorflow-plugins/libmetal_plugin.dylib, 0x0006): Library not loaded: @rpath/_pywrap_tensorflow_internal.so", {}),
    ("cpu.no_avx", "F0000 cpu_feature_guard.cc:44] The TensorFlow library was compiled to use AVX2 instructions, but these aren't available on your machine.", {}),
    ("cpu.no_avx", "Process finished with exit code 132 (interrupted by signal 4: SIGILL)", {}),
    ("sys.glibc_old", "ImportError: /lib64/libc.so.6: version `GLIBC_2.27' not found (required by /v/tensorflow/libtensorflow_cc.so.2)", {}),
    ("sys.libstdcxx_old", "ImportError: /cluster/gcc/lib64/libstdc++.so.6: version `CXXABI_1.3.11' not found", {}),
]
# fmt: on


@pytest.mark.parametrize(("cause", "log", "told"), WORDINGS)
def test_a_wording_leads_to_its_cause(cause: str, log: str, told: dict[str, object]) -> None:
    assert causes(log, **told)[:1] == [cause]


INNOCENT = [
    ("tensorflow-gpu               2.9.0\nkeras 2.9.0\n", {}),
    (
        "tensorflow-gpu            2.3.0           he13fc11_0\ntensorflow                2.3.0           gpu_py38h8c0d9a2_0",
        {},
    ),
    ("Requirement already satisfied: tensorflow==2.19.0 in /v/lib/python3.11/site-packages", {}),
    (
        "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]",
        {**WINDOWS, "tf": "2.10.1"},
    ),
    ("Num GPUs Available:  1", {**WINDOWS, "tf": "2.10.1"}),
    ("Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9500 MB memory", {}),
    (
        "The TensorFlow library wasn't compiled to use AVX2 instructions, but these are available on your machine and could speed up CPU computations.",
        {},
    ),
    ("Epoch 3/10 - loss: 0.31 - accuracy: 0.91 - val_loss: 0.40", {}),
    ("Saving model to model.keras\nWARNING:absl:You are saving your model as an HDF5 file", {}),
    ("an illegal instruction was encountered", {}),
    ("ERROR: No matching distribution found for torch==2.9.9", {}),
    ("scipy 1.10 requires numpy<1.27, but you have numpy 2.0.0 which is incompatible.", {}),
]


@pytest.mark.parametrize(("log", "told"), INNOCENT)
def test_an_innocent_log_names_none_of_these_causes(log: str, told: dict[str, object]) -> None:
    groups = {"py", "pkg", "win", "arm", "mac", "cpu", "sys"}
    assert not [one for one in causes(log, **told) if one.partition(".")[0] in groups]


def test_a_release_that_is_asked_for_names_its_pythons() -> None:
    found = findings(
        "ERROR: No matching distribution found for tensorflow==2.15.0", python="3.12.4"
    )[0]
    assert "3.9, 3.10, 3.11" in found.summary
    assert "python3.10 -m venv" in commands(found)
    assert "tensorflow==2.21.*" in commands(found)  # for those who keep Python 3.12


def test_a_python_too_new_for_all_is_said_to_be_so() -> None:
    found = findings(
        "ERROR: No matching distribution found for tensorflow", python="3.15", os="Windows 11"
    )[0]
    assert "Python 3.15 is too new for every TensorFlow" in found.summary
    assert "py -3.12 -m venv" in commands(found)


def test_a_python_that_fits_points_to_the_system() -> None:
    found = findings("ERROR: No matching distribution found for tensorflow", python="3.11.7")[0]
    assert "32-bit" in " ".join(step.text for step in found.fix)


def test_the_python_of_the_solver_wins_over_the_machines() -> None:
    hint = "hint: You require CPython 3.8 (`cp38`), but we only found wheels for `tensorflow` (v2.19.0) with the following Python ABI tags: `cp39`, `cp310`"
    found = findings(hint, python="3.11")[0]
    assert "for Python 3.8" in found.summary


@pytest.mark.parametrize(
    ("tensorflow", "command"),
    [
        ("2.17.0", "numpy<2.0.0,>=1.23.5"),
        ("2.12.0", "numpy<=1.24.3,>=1.22"),
        ("2.18.0", "numpy<2.1.0,>=1.26.0"),
    ],
)
def test_numpy_2_is_moved_to_what_the_release_takes(tensorflow: str, command: str) -> None:
    log = (
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.2.1 as it may crash."
    )
    found = findings(log, tf=tensorflow)[0]
    assert "NumPy 2.2.1 does not fit TensorFlow" in found.summary
    assert command in commands(found)


def test_a_release_that_takes_numpy_2_blames_another_package() -> None:
    log = (
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.2.1 as it may crash."
    )
    found = findings(log, tf="2.20.0")[0]
    assert "numpy<" not in commands(found)
    assert "h5py" in commands(found)


@pytest.mark.parametrize(
    "log",
    [
        "RuntimeError: module compiled against API version 0x10 but this version of numpy is 0xf",
        "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 96 from C header, got 80 from PyObject",
        "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 88 from C header, got 96 from PyObject",
    ],
)
def test_a_numpy_older_than_the_build_is_raised(log: str) -> None:
    assert '--upgrade "numpy' in commands(findings(log)[0])


def test_numpy_is_not_raised_where_the_package_is_the_older_one() -> None:
    log = "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject"
    assert "numpy<2" in commands(findings(log)[0])


@pytest.mark.parametrize(
    ("tensorflow", "pin"),
    [
        ("2.9.1", "<3.20"),
        ("2.15.0", "<5"),
        ("2.19.0", "<6"),
        ("2.20.0", ">=5.28.0"),
        ("2.21.0", "<8"),
    ],
)
def test_protobuf_is_pinned_as_the_release_asks(tensorflow: str, pin: str) -> None:
    found = findings("TypeError: Descriptors cannot be created directly.", tf=tensorflow)[0]
    assert pin in commands(found).splitlines()[0]


def test_two_packages_are_named_with_their_versions() -> None:
    found = findings("tensorflow    2.1.0\ntensorflow-gpu    2.0.0\n")[0]
    assert found.cause == "pkg.mixed_install"
    assert "tensorflow 2.1.0, tensorflow-gpu 2.0.0" in found.summary


def test_a_cpu_build_of_another_channel_beside_condas_gpu_package_is_mixed() -> None:
    log = "tensorflow      1.12.0     py36_0    conda-forge\ntensorflow-gpu  1.12.0     h0d30ee6_0    defaults\n"
    assert causes(log)[:1] == ["pkg.mixed_install"]


def test_conflicts_that_pip_reports_for_two_tensorflows_are_mixed() -> None:
    log = """tensorflow-gpu 2.3.0 requires gast==0.3.3, but you have gast 0.4.0 which is incompatible.
tensorflow 2.5.0 requires h5py~=3.1.0, but you have h5py 2.10.0 which is incompatible."""
    assert causes(log)[:1] == ["pkg.mixed_install"]


def test_native_windows_leads_and_takes_the_cpu_build_as_its_symptom() -> None:
    found = findings("OrderedDict([('is_cuda_build', False)])", os="Windows 10", tf="2.16.1")
    assert [one.cause for one in found] == ["win.native_no_gpu"]
    assert found[0].verdict == "proven"
    assert "pkg.cpu_only_build" in found[0].symptoms


def test_native_windows_is_no_reason_up_to_2_10_nor_in_wsl() -> None:
    log = "OrderedDict([('is_cuda_build', False)])"
    assert causes(log, os="Windows 10", tf="2.10.1") == ["pkg.cpu_only_build"]
    assert causes(log, os="Windows 11 WSL2", tf="2.16.1") == ["pkg.cpu_only_build"]


def test_a_file_of_keras_3_asks_for_a_later_tensorflow() -> None:
    found = findings("ValueError: Unrecognized keyword arguments: ['batch_shape']", tf="2.13.0")[0]
    assert "tensorflow>=2.16" in commands(found)


def test_a_savedmodel_folder_is_answered_with_its_own_layer() -> None:
    found = findings(
        "ValueError: File format not supported: filepath=m. Keras 3 only supports V3 `.keras` files",
        tf="2.17",
    )[0]
    assert "TFSMLayer" in found.fix[0].text


def release(numpy_limit: str) -> Release:
    """A release with nothing but its limit on NumPy."""
    return Release(
        tensorflow="2.12", python_versions=(), cuda="", cudnn="", min_driver_linux="", min_driver_windows="",
        requirement="", has_native_windows_gpu=False, keras="", numpy_limit=numpy_limit,
        compute_capabilities=(), first_wheel="", last_wheel="", source="", date="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "requirement"),
    [
        ("2.12.0: <1.24,>=1.22 | 2.12.1: <=1.24.3,>=1.22", "<=1.24.3,>=1.22"),
        ('<2.0.0,>=1.23.5;py<="3.11";<2.0.0,>=1.26.0;py>="3.12"', "<2.0.0,>=1.23.5"),
        ("~=1.19.2", "~=1.19.2"),
        ("", ""),
    ],
)
def test_the_limit_on_numpy_is_that_of_the_last_wheel(text: str, requirement: str) -> None:
    assert numpy_requirement(release(text)) == requirement
    assert numpy_requirement(None) == ""


def test_a_log_without_knowledge_still_has_a_fix() -> None:
    log = scan(["ERROR: No matching distribution found for tensorflow"], all_causes())
    assert diagnose(log=log, facts=MachineFacts()).findings[0].fix
