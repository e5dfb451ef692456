"""The doctor's own words in the languages it speaks; the texts of causes come with the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.base.language import Language
    from tfdyno.core.choose.software import Behind
    from tfdyno.core.doctor.move import Move

_MOST_LINES = 20

_WORDS: dict[str, tuple[str, str]] = {
    "because": ("because", "依据"),
    "why": ("why", "原因"),
    "fix": ("fix", "解决"),
    "also": ("explains", "连带"),
    "more": ("more", "详见"),
    "memory": ("memory", "显存"),
    "fine": ("fine", "正常"),
    "ignored": ("ignored", "忽略"),
    "not run": ("not run", "未检查"),
    "notes": ("note", "备注"),
    "proven": ("proven", "已证实"),
    "likely": ("likely", "很可能"),
    "possible": ("possible", "可能"),
    "error": ("error", "错误"),
    "errors": ("errors", "错误"),
    "warning": ("warning", "警告"),
    "warnings": ("warnings", "警告"),
    "note": ("note", "提示"),
    "moves": (
        "{path} moves to the JAX backend as it is: run it with KERAS_BACKEND=jax.",
        "{path} 可直接迁移到 JAX 后端：用 KERAS_BACKEND=jax 运行。",
    ),
    "moves after migrate": (
        "{path} moves to the JAX backend after: tfdyno migrate {script} --to jax ({lines}).",
        "{path} 在执行 tfdyno migrate {script} --to jax 之后可迁移到 JAX 后端（{lines}）。",
    ),
    "moves after rewrite": (
        "{path} does not move to the JAX backend without rewriting {lines}.",
        "{path} 需改写 {lines} 才能迁移到 JAX 后端。",
    ),
    "moves unknown": (
        "Whether {path} moves to the JAX backend is unknown: {lines} could not be judged.",
        "无法判断 {path} 能否迁移到 JAX 后端：{lines} 无法判定。",
    ),
    "nothing wrong": ("Nothing is wrong here.", "没有发现问题。"),
    "tensorflow fails": (
        "TensorFlow does not run here: {error}",
        "TensorFlow 在本机无法运行：{error}",
    ),
    "nothing known": (
        "No cause that tfdyno knows is in this log.",
        "日志中没有 tfdyno 能识别的问题。",
    ),
    "unknown error": (
        "An error that tfdyno does not know: {text}",
        "tfdyno 不认识的错误：{text}",
    ),
    "unknown error up": (
        "Read the log upwards from there: the first error is the cause, later ones are its echo.",
        "请从该处往上阅读日志：第一个错误才是原因，后面的只是其后果。",
    ),
    "unknown error log": (
        "If the log is cut, run again with all of it: TF_CPP_MIN_LOG_LEVEL=0, and 2>&1 | tee FILE.",
        "若日志不完整，请重新运行并保存全部输出：TF_CPP_MIN_LOG_LEVEL=0，并加 2>&1 | tee FILE。",
    ),
    "unknown error look": (
        "Look for that line in https://github.com/tensorflow/tensorflow/issues; --share makes a "
        "report of it.",
        "请在 https://github.com/tensorflow/tensorflow/issues 中搜索该行；--share 可生成报告。",
    ),
    "harmless only": (
        "Nothing is wrong: every message that tfdyno knows in this log is harmless.",
        "没有问题：日志中 tfdyno 能识别的消息均无害。",
    ),
    "harmless lines": ("{n} harmless: {kinds}", "{n} 条无害：{kinds}"),
    "harmless count": ("{n} harmless", "{n} 条无害"),
    "show ignored": ("--show-ignored lists them", "加 --show-ignored 可逐条查看"),
    "times": ("{n} times", "{n} 次"),
    "plan": (
        "Commands in order, the root cause first. Read them before you run them; tfdyno runs none.",
        "命令按顺序列出，根本原因在前。请先阅读再执行；tfdyno 不会执行任何命令。",
    ),
    "nothing to do": ("Nothing to do.", "无需操作。"),
    "total": ("{errors}, {warnings}", "{errors}，{warnings}"),
    "exit": ("exit {code}", "退出码 {code}"),
    "behind release": (
        "The tables of releases are of {date} and end with {last}: TensorFlow {tensorflow} came "
        "later, and nothing is known of its wheels. Take a newer tfdyno.",
        "版本表的日期是 {date}，止于 {last}：TensorFlow {tensorflow} 更新，其安装包的情况未知。"
        "请更新 tfdyno。",
    ),
    "behind candidate": (
        "What the tables say of TensorFlow {tensorflow} was read from the release candidate {last} "
        "on {date}; the release itself may differ.",
        "版本表中 TensorFlow {tensorflow} 的数据取自候选版本 {last}（{date}），正式版可能不同。",
    ),
    "behind age": (
        "The tables of releases are of {date}, {age_days} days ago, and end with {last}: a newer "
        "TensorFlow may be out, of which they know nothing.",
        "版本表的日期是 {date}（{age_days} 天前），止于 {last}："
        "可能已有更新的 TensorFlow 不在表中。",
    ),
}


_REASONS = {
    "this TensorFlow has no package metadata": "此 TensorFlow 没有软件包元数据",
    "macOS has no NVIDIA driver": "macOS 没有 NVIDIA 驱动",
    "this Windows has no NVIDIA driver": "此 Windows 没有 NVIDIA 驱动",
    "there is no NVIDIA device": "没有 NVIDIA 设备",
    "this is a recorded machine": "这是一台被记录的机器",
    "only Linux shows its devices as files": "只有 Linux 以文件形式显示设备",
    "WSL shows cards as /dev/dxg only": "WSL 只以 /dev/dxg 显示显卡",
    "this machine shows no PCI bus": "本机没有可读的 PCI 总线",
    "there is no site-packages folder to read": "没有可读取的 site-packages 目录",
    "TensorFlow is not installed for this Python": "此 Python 未安装 TensorFlow",
    "the package 'packaging' is not installed": "未安装 packaging 包",
    "XLA compiles for a GPU on Linux only": "XLA 只在 Linux 上为 GPU 编译",
    "this TensorFlow is built without CUDA": "此 TensorFlow 不含 CUDA",
    "because of --quick": "因为使用了 --quick",
    "because TensorFlow is not installed": "因为未安装 TensorFlow",
}
"""Why a probe was not run, in Chinese; a failure's own words have no translation."""


def reason(text: str, language: Language) -> str:
    """Return why something was not looked at; as it stands where there is no translation."""
    return _REASONS.get(text, text) if language == "zh" else text


def word(key: str, language: Language, **values: object) -> str:
    """Return a word or sentence of the doctor, filled with values.

    Raises:
        KeyError: The doctor has no such word.
    """
    text = _WORDS[key][language == "zh"]
    return text.format(**values) if values else text


def behind_words(behind: Behind | None, tensorflow: str, language: Language = "en") -> str:
    """Return why the tables may not hold for a TensorFlow, in a sentence; empty: they do."""
    if behind is None:
        return ""
    return word(
        f"behind {behind.why}", language, date=behind.date, last=behind.last,
        tensorflow=tensorflow, age_days=behind.age_days,
    )  # fmt: skip


def move_sentence(move: Move, language: Language) -> str:
    """Say in one sentence whether code moves, and which lines are in the way."""
    unknown = [one.source for one in move.obstacles if one.effect == "unknown"]
    stops = [one.source for one in move.obstacles if one.effect == "stops"]
    by_hand = [one.source for one in move.by_hand]
    key, sources = {
        "moves": ("moves", []),
        "after_migrate": ("moves after migrate", stops),
        "rewrite": ("moves after rewrite", by_hand),
        "unknown": ("moves unknown", unknown),
    }[move.answer]
    names = tuple(dict.fromkeys(sources))
    files = list(dict.fromkeys(one.file for one in move.obstacles if one.effect == "stops"))
    is_script = len(files) == 1 and move.path.endswith(files[0])
    script = move.path if is_script else files[0] if len(files) == 1 else "SCRIPT"
    return word(key, language, path=move.path, lines=_lines(names, language), script=script)


def _lines(sources: tuple[str, ...], language: Language) -> str:
    """Write ``train.py:4, 9`` and, of very many, how many more there are."""
    shown: dict[str, list[str]] = {}
    for one in sources[:_MOST_LINES]:
        file, _, line = one.rpartition(":")
        shown.setdefault(file, []).append(line if file else one)
    told = ", ".join(f"{file}:{', '.join(own)}" if file else "; ".join(own)
                     for file, own in shown.items())  # fmt: skip
    left = len(sources) - _MOST_LINES
    more = {"en": f" and {left} more", "zh": f" 等另外 {left} 处"}[language]
    return told + more if left > 0 else told


def counted(number: int, key: str, language: Language) -> str:
    """Write ``1 error``, ``2 warnings``; in Chinese ``2 个错误``."""
    if language == "zh":
        return f"{number} 个{word(key, language)}"
    return f"{number} {word(key if number == 1 else key + 's', language)}"
