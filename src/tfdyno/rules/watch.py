"""Lines of a log that tell a fact without being a fault: versions, cards, libraries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A line worth keeping, with the values that its expression names."""

    name: str
    """Under which ``LogFacts.watched`` holds the lines."""
    needle: str
    """Lower-case text that the line holds."""
    match: str = ""
    """Regular expression, ignoring case, that the line must also match; names values."""
    cap: int = 20
    """Lines kept."""
    counted: bool = False
    """Whether lines beyond ``cap`` are counted, in ``LogFacts.watched_count``."""


WATCHES: tuple[Watch, ...] = (
    Watch(
        name="tensorflow",
        needle="tensorflow",
        match=r"\btensorflow(?:[-_](?:gpu|cpu|intel|macos))?(?: version\W{1,3}|==|-)"
        r"v?(?P<tensorflow>[012]\.\d+(?:\.\d+)?)",
    ),
    Watch(
        name="tensorflow", needle="tf version", match=r"tf version\W+v?(?P<tensorflow>\d\.\d+\S*)"
    ),
    Watch(
        name="tensorflow",
        needle="tensorflow",
        match=r"(?:import tensorflow|tf\.__version__).*?(?P<tensorflow>[12]\.\d+\.\d+)",
    ),
    Watch(
        name="python",
        needle="python",
        match=r"\bpython(?: version)?[\s:=]+(?P<python>[23]\.\d+(?:\.\d+)?)\b",
    ),
    Watch(name="python", needle="python", match=r"[/\\]python(?P<python>[23]\.\d+)[/\\]"),
    Watch(name="python", needle="python3", match=r"python(?P<a>3)(?P<b>\d\d?)[/\\](?:lib|site-)"),
    Watch(
        name="driver",
        needle="driver version:",
        match=r"driver version:\s*(?P<driver>\d{3}\.\d+(?:\.\d+)?)"
        r"(?:.*cuda version:\s*(?P<cuda>\d+\.\d+))?",
    ),
    Watch(
        name="kernel_driver",
        needle="kernel reported version is",
        match=r"kernel reported version is:?\s*(?P<driver>\d{3}(?:\.\d+)+)",
    ),
    Watch(
        name="library_driver",
        needle="libcuda reported version is",
        match=r"libcuda reported version is:?\s*(?P<driver>\d{3}(?:\.\d+)+)",
    ),
    Watch(
        name="gpu",
        needle="compute capability",
        match=r"name:\s*(?P<gpu>[^,]+),.*compute capability:?\s*(?P<capability>\d+\.\d+)",
    ),
    Watch(
        name="gpu",
        needle="major:",
        match=r"(?:name:\s*(?P<gpu>.+?)\s+)?major:\s*(?P<a>\d+)\s+minor:\s*(?P<b>\d+)",
    ),
    Watch(
        name="gpu",
        needle="computecapability:",
        match=r"name:\s*(?P<gpu>.+?)\s+computecapability:\s*(?P<capability>\d+\.\d+)",
    ),
    *(
        Watch(
            name="gpu_table",
            needle=maker,
            match=r"^\|\s+\d+\s+(?P<gpu>\w.+?)\s+(?:On|Off|WDDM|TCC|N/A)\s+\|\s+0000",
        )
        for maker in ("nvidia ", "tesla ", "geforce ", "quadro ")
    ),
    Watch(name="library_path", needle="ld_library_path:", match=r"ld_library_path: ?(?P<path>\S+)"),
    Watch(
        name="failed",
        needle="could not load dynamic library",
        match=r"could not load dynamic library '?(?P<soname>[\w.+-]+)",
    ),
    Watch(
        name="failed",
        needle="cannot open shared object file",
        match=r"(?P<soname>lib[\w+-]+\.so[\w.]*): cannot open shared object file",
    ),
    Watch(
        name="opened",
        needle="successfully opened dynamic library",
        match=r"successfully opened dynamic library (?P<soname>[\w.+-]+)",
    ),
    Watch(name="windows", needle="\\users\\", match=r"[a-z]:\\+users\\", cap=3),
    Watch(name="windows", needle="\\program", match=r"[a-z]:\\+program", cap=3),
    Watch(name="windows", needle="\\lib\\site-packages\\", cap=3),
    Watch(name="windows", needle=".dll not found", cap=3),
    Watch(name="windows", needle="dll load failed", cap=3),
    Watch(name="linux", needle="shared object file", cap=3),
    Watch(
        name="linux", needle="linux", match=r"x86_64-linux-gnu|linux_x86_64|linux[ -]\d\.\d", cap=3
    ),
    Watch(
        name="linux", needle="/usr/local", match=r"(?:^|[\s\"':(])/usr/local/(?:cuda|lib)", cap=3
    ),
    Watch(name="linux", needle="/home/", match=r"(?:^|[\s\"':(])/home/\w", cap=3),
    Watch(name="macos", needle=".dylib", match=r"\.dylib\b", cap=3),
    Watch(name="macos", needle="/users/", match=r"(?:^|[\s\"'(])/users/\w", cap=3),
    Watch(name="macos", needle="metal device set to", cap=3),
    Watch(name="wsl", needle="/usr/lib/wsl", cap=3),
    Watch(name="wsl", needle="microsoft", match=r"microsoft(?:-standard)?-wsl2?", cap=3),
    Watch(name="wsl", needle="/mnt/", match=r"[\s\"':]/mnt/[a-z]/users", cap=3),
    Watch(
        name="colab",
        needle="colab",
        match=r"google\.colab|/content/|colab_kernel|colabtools",
        cap=3,
    ),
    Watch(name="colab", needle="/usr/lib64-nvidia", cap=3),
    Watch(name="kaggle", needle="/kaggle/", cap=3),
    Watch(
        name="conda",
        needle="conda",
        match=r"[/\\](?:ana|mini)?conda\d?[/\\]|/envs/|miniforge",
        cap=3,
    ),
    Watch(name="jetson", needle="tegra", cap=3),
    Watch(name="jetson", needle="jetpack", cap=3),
    Watch(name="aarch64", needle="aarch64", cap=3),
)
