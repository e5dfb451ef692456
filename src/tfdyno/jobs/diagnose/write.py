"""Write what a proven diagnosis suggests: the recipe, and a diff of the user's own code."""

from __future__ import annotations

import difflib
import io
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import OSErrorsAs, UsageError
from tfdyno.core.recipe.recipe import diff
from tfdyno.core.recipe.recipe_file import FILE_NAME, to_toml
from tfdyno.rules.rewrite.dataset_rewrite import edits, rewritten
from tfdyno.rules.rewrite.script_rewrite import script_rewritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.fix_proof import FixProof, ProvenDiagnosis
    from tfdyno.core.measure.step_facts import StepFacts
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.rules.rewrite.dataset_rewrite import Edit

DIFF_NAME = "suggested.diff"
_HEAD = "What tfdyno diagnose has proven to be faster with the same losses."
_NOTHING = "tfdyno diagnose has proven nothing to be faster: no setting is added here."


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before minutes of work.

    Raises:
        UsageError: It is a file, its parent does not exist, or it may not be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write to {folder}", why="it is a file", remedy="name a folder")
    with OSErrorsAs(UsageError, f"cannot write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".tfdyno"
        probe.touch()
        probe.unlink()


def written(
    folder: Path, found: ProvenDiagnosis, base: Recipe, facts: StepFacts, workload: Workload
) -> tuple[Path, ...]:
    """Write the recipe with what was kept, and the diff where the code can say the same.

    Args:
        folder: Exists.
        found: What was proven.
        base: The recipe without the fixes.
        facts: Where the stages of the pipeline stand in the code.
        workload: Its file names the folder that those places are looked for in.

    Returns:
        The files, of which the diff may be missing.

    Raises:
        UsageError: A file cannot be written.
    """
    recipe_file = folder / FILE_NAME
    gains = {name: _gain(proof) for proof in found.proofs if proof.kept for name in proof.settings}
    comments = {name: words for name, words in gains.items() if words}
    head = (_HEAD if gains else _NOTHING, "What is not set here stays as the script has it.")
    write_atomic(recipe_file, to_toml(found.recipe, comments=comments, head=head).encode())
    changes = diff(base, found.recipe)
    text = suggestion({name: new for name, (_, new) in changes.items()}, facts, workload)
    if not text:
        return (recipe_file,)
    write_atomic(folder / DIFF_NAME, text.encode())
    return recipe_file, folder / DIFF_NAME


def suggestion(settings: Mapping[str, object], facts: StepFacts, workload: Workload) -> str:
    """Make a unified diff that does in code what settings do; empty: there is none.

    Args:
        settings: Those that are kept, by flat name.
        facts: Stages of the pipeline with their places.
        workload: Its file names the folder that the places are relative to, and is the script.
    """
    stages = facts.input.stages if facts.input else ()
    script = Path(workload.reference.partition(":")[0])
    changes: dict[Path, tuple[Edit, ...]] = {script: ()} if script.suffix == ".py" else {}
    for name, of_file in edits(stages, settings).items():
        if file := _found(name, workload):
            changes[file] = of_file
    if facts.replica_count > 1:  # that of the recipe is of one replica, that of the code of all
        settings = {name: value for name, value in settings.items() if name != "batch_size"}
    return "".join(_diff(file, of, settings if file == script else {})
                   for file, of in changes.items())  # fmt: skip


def _diff(file: Path, changes: Iterable[Edit], settings: Mapping[str, object]) -> str:
    try:
        before = file.read_bytes().decode()  # as it is: lines may end with a return too
        after = script_rewritten(rewritten(before, changes), settings)
    except (OSError, ValueError, SyntaxError):
        return ""  # a suggestion less: the recipe says the same
    lines = difflib.unified_diff(
        _lines(before), _lines(after), f"a/{_shown(file)}", f"b/{_shown(file)}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
                   for line in lines)  # fmt: skip


def _lines(text: str) -> list[str]:
    """Split with their ends; a form feed ends none, to Python as to ``patch``."""
    return list(io.StringIO(text, newline="\n"))


def _gain(proof: FixProof) -> str:
    low, high = proof.interval
    return f"{proof.cause}: {proof.ratio:.2f}x as fast ({low:.2f} to {high:.2f})."


def _found(name: str, workload: Workload) -> Path | None:
    """Return the file that a place names: the workload's own, one beside it, or as it is.

    A file of the same name where the user stands is another one.
    """
    script = Path(workload.reference.partition(":")[0])
    places = (script.parent / name, script.parent / Path(name).name, Path(name))
    return next((one for one in places if one.is_file() and one.suffix == ".py"), None)


def _shown(file: Path) -> str:
    """Show it from where the user stands, if it lies below."""
    whole = file.absolute()
    return str(whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else whole)
