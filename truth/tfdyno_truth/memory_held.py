"""What ``tfdyno estimate`` says that the step of a measured row holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import memory_model
from tfdyno.core.base.errors import UsageError
from tfdyno.model.time.memory import Memory, predict_memory
from tfdyno_truth.records import Record, program_of, read_record

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program
    from tfdyno_truth.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records by their key, each read once."""

    folder: Path
    known: dict[tuple[str, str, str], Record] = field(default_factory=dict)

    def read(self, row: Row) -> Record:
        """The record of a row.

        Raises:
            UsageError: There is none; says how to make it.
        """
        if row.record not in self.known:
            record = read_record(self.folder, row.record)
            if record is None:
                raise UsageError(
                    f"no kernel record of {' '.join(row.record)} in {self.folder}",
                    remedy="make it with `tfdyno-truth records`",
                )
            self.known[row.record] = record
        return self.known[row.record]


def predicted(row: Row, records: Records, batch_size: int = 0) -> tuple[Program, Memory]:
    """What ``tfdyno estimate`` says a row's step holds, and the program whose plan that is.

    One operation after another in PyTorch holds what XLA's plan does, times a factor; TensorFlow's
    executor has a plan of its own.
    """
    record = records.read(row)
    torch = row.framework == "pytorch"
    program = record.program if torch else program_of(record, row.execution)
    held = predict_memory(
        program,
        gpu=find(row.slug),
        batch_size=batch_size or row.batch_size,
        execution=row.execution,
        model=memory_model(),
    )
    return program, held
