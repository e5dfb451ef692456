"""The folders of a project's outputs: made aside, put in place whole, found again by key."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json, to_json, write_atomic
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.project.output import FILE, Made
from tfdyno.core.project.project import ANSWER, DOCUMENT, FOLDER, LOG, OUTPUTS, PART, Project
from tfdyno.core.project.step_key import SHORT
from tfdyno.core.project.step_outputs import MAY_GO_ON, PAGE
from tfdyno.core.project.step_reference import looked_up

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.project.project import ProjectStep

RECORDS = ("run.json", "export.json", "dataset.json")
_OLD = ".old"
_ADDS = "models add"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of one step under one key."""

    project: Project
    step: str
    key: str

    @property
    def name(self) -> str:
        """Relative to ``tfdyno-project``, as ``StepRun.output``."""
        return f"{OUTPUTS}/{self.step}-{self.key[:SHORT]}"

    @property
    def shown(self) -> str:
        """Relative to the project's file, where its children run."""
        return f"{FOLDER}/{self.name}"

    @property
    def folder(self) -> Path:
        """Where it stands when it is whole."""
        return self.project.folder / self.name

    @property
    def part(self) -> Path:
        """Where it is made."""
        return self.folder.with_name(self.folder.name + PART)

    def made(self) -> Made | None:
        """Return what the whole output says of itself; None: there is none, or it is damaged."""
        whole = self._whole()
        return _note(whole, self.key) if (whole / DOCUMENT).is_file() else None

    def _whole(self) -> Path:
        """Return the folder itself, or one made anew and killed just before it got its name."""
        return self.part if (self.part / DOCUMENT).is_file() else self.folder

    def begun(self) -> Made | None:
        """Return the same of one that is not finished."""
        return None if (self.part / DOCUMENT).is_file() else _note(self.part, self.key)

    def begin(self, note: Made, *, goes_on: bool) -> None:
        """Make the folder in which a step writes.

        Raises:
            ToolError: It cannot be made.
        """
        try:
            if not goes_on:
                shutil.rmtree(self.part, ignore_errors=True)
            self.part.mkdir(parents=True, exist_ok=True)
            self.note(note)
        except OSError as error:
            raise ToolError(f"cannot make {self.part}", why=str(error)) from None

    def note(self, made: Made) -> None:
        """Keep what is known of an output that is not finished."""
        write_atomic(self.part / FILE, to_json(made, indent=2) + b"\n")

    def document(self) -> Value:
        """Read what the step's command answered; raises ``UsageError`` where it cannot."""
        path = self._whole() / DOCUMENT
        try:
            return json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot read {path}", why=str(error),
                remedy=f"make it again with --force {self.step}",
            ) from None  # fmt: skip

    def named(self, keys: tuple[str, ...]) -> str:
        """Return the folder, or a value of the document; raises ``UsageError``."""
        return looked_up(self.document(), self.step, keys) if keys else self.shown

    def localised(self, value: object) -> object:
        """Return a document's value with paths as they will be, relative to the project's file."""
        if isinstance(value, str):
            root = f"{self.project.file.parent.resolve()}/"
            for part in (f"{root}{self.shown}{PART}", f"{self.shown}{PART}"):
                value = value.replace(part, self.shown)
            return value.removeprefix(root)
        if isinstance(value, list):
            return [self.localised(one) for one in value]
        if isinstance(value, dict):
            return {name: self.localised(one) for name, one in value.items()}
        return value

    def finish(self, made: Made, document: object) -> None:
        """Put the output in place, with its answer; one that stood there goes.

        Raises:
            ToolError: The disk is full, or the folder cannot be written.
        """
        try:
            for record in _records(self.part):
                text = record.read_text(encoding="utf-8", errors="surrogateescape")
                data = str(self.localised(text)).encode(errors="surrogateescape")
                write_atomic(record, data)
            self.note(made)
            (self.part / ANSWER).unlink(missing_ok=True)
            write_atomic(self.part / DOCUMENT, to_json(document, indent=2) + b"\n")
        except OSError as error:
            raise ToolError(f"cannot write {self.part}", why=str(error)) from None
        self.put_in_place()

    def put_in_place(self) -> None:
        """Give a whole output its name; what was asked for beside one and begun stays.

        Raises:
            ToolError: The folder cannot be written.
        """
        old = self.folder.with_name(self.folder.name + _OLD)
        try:
            if (self.part / DOCUMENT).is_file():
                shutil.rmtree(old, ignore_errors=True)
                if self.folder.exists():
                    self.folder.rename(old)
                self.part.rename(self.folder)
        except OSError as error:
            raise ToolError(f"cannot write {self.folder}", why=str(error)) from None
        shutil.rmtree(old, ignore_errors=True)
        if self.begun() is None:  # of a kill, and of no use
            shutil.rmtree(self.part, ignore_errors=True)

    def drop_parts(self) -> None:
        """Remove what a step of this name began under other keys and no command would go on with.

        A training, for example, may be that of another file, or of options that come back.
        """
        for path in self.folder.parent.glob(f"{self.step}-{'?' * SHORT}{PART}"):
            note = _note(path)
            is_of_use = note is not None and note.rests_on.get("command") in MAY_GO_ON
            if path != self.part and not is_of_use:
                shutil.rmtree(path, ignore_errors=True)


def _records(part: Path) -> Iterator[Path]:
    """List files in which a command tells of its own place, which is another from now on."""
    for pattern in (PAGE, *RECORDS, *(f"*/{name}" for name in RECORDS)):
        yield from part.glob(pattern)


def read_answer(part: Path, *, is_script: bool) -> tuple[object, bool]:
    """Return what a child printed, and whether that is JSON as a command of tfdyno prints it.

    Whatever else a script printed goes to its log.
    """
    try:
        data = (part / ANSWER).read_bytes()
        answer = _sound(json.loads(data))
        to_json(answer)  # that can be kept
    except FileNotFoundError:  # of a server that did not start: nothing was asked of it
        return None, False
    except (ValueError, RecursionError):
        answer = None
    if is_script and not isinstance(answer, dict):
        with (
            OSErrorsAs(ToolError, f"cannot write {part / LOG}"),
            (part / LOG).open("ab") as log,
        ):
            log.write(data)
        return {}, True
    return answer, answer is not None


def _sound(value: object) -> object:
    """Return JSON without halves of signs, which Python reads and no file takes."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_sound(one) for one in value]
    if isinstance(value, dict):
        return {str(_sound(name)): _sound(one) for name, one in value.items()}
    return value


def is_still_there(step: ProjectStep, output: Output) -> bool:
    """Return whether what the step did outside its folder stands: a model version may leave."""
    if step.command != _ADDS:
        return True
    try:
        path = output.named(("path",))
    except UsageError:
        return False
    return (output.project.file.parent / path).exists()


def _note(folder: Path, key: str = "") -> Made | None:
    """Return the note of an output; None: there is none for this whole key. Empty: for any."""
    try:
        found = from_json((folder / FILE).read_bytes(), Made, where=str(folder / FILE))
    except (OSError, UsageError):
        return None
    return found if key in ("", found.key) else None
