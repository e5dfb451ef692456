"""All rows as arrays, so that one evaluation of the time model predicts every row at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tfdyno.catalog.gpus import find
from tfdyno.core.base.settings import BY_OPERATION
from tfdyno.model.time import intervals, kernel_time, step
from tfdyno.model.time.kernel_table import ClassWork, KernelTable
from tfdyno.model.time.precision import is_single, tf32_allowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tfdyno.core.choose.time_model import Constants

    Floats = NDArray[np.float64]

from tfdyno.model.time.kernel_table import CostClass
from tfdyno_truth.records import Record, program_of, read_record
from tfdyno_truth.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """Rows with a kernel record, and what their prediction needs."""

    rows: tuple[Row, ...]
    families: tuple[str, ...]
    classes: tuple[CostClass, ...]
    work: ClassWork
    cards: kernel_time.Targets
    card_index: NDArray[np.intp]
    settings: tuple[step.Setting, ...]
    setting_index: NDArray[np.intp]
    log_step: Floats

    def predict(self, constants: Constants) -> Floats:
        """Step time of every row in seconds."""
        return self.timed(constants).step_s

    def launch_share(self, constants: Constants) -> Floats:
        """Share of launches and host in the step of every row."""
        if not self.rows:
            return np.empty(0)
        timed = self.timed(constants)
        return timed.launch_s / timed.step_s

    def timed(self, constants: Constants) -> step.StepTime:
        """Step time of every row by cause."""
        priced = kernel_time.rates(self.classes, self.cards, constants)
        by_row = kernel_time.Rates(
            s_per_flop=priced.s_per_flop[self.card_index],
            s_per_byte=priced.s_per_byte[self.card_index],
            s_per_extra_byte=priced.s_per_extra_byte[self.card_index],
            tensor_cores=priced.tensor_cores[self.card_index],
        )
        how = [step.factors(setting, constants) for setting in self.settings]

        def each(name: str) -> Floats:
            return np.array([getattr(one, name) for one in how])[self.setting_index]

        factors = step.Factors(**{field: each(field) for field in step.Factors.__slots__})
        return step.step_time(self.work, self.classes, by_row, factors, constants)

    def take(self, chosen: NDArray[np.intp]) -> Design:
        """The design of some of the rows."""
        work = ClassWork(
            launches=self.work.launches[chosen],
            executed_flops=self.work.executed_flops[chosen],
            traffic_bytes=self.work.traffic_bytes[chosen],
            extra_bytes=self.work.extra_bytes[chosen],
        )
        return Design(
            rows=tuple(self.rows[i] for i in chosen),
            families=tuple(self.families[i] for i in chosen),
            classes=self.classes,
            work=work,
            cards=self.cards,
            card_index=self.card_index[chosen],
            settings=self.settings,
            setting_index=self.setting_index[chosen],
            log_step=self.log_step[chosen],
        )


def design_of(rows: Sequence[Row], folder: Path, sustained: Mapping[str, float]) -> Design:
    """Arrange the rows that have a kernel record; the others are left out."""
    found = _tables(rows, folder)
    kept = [row for row in rows if _key(row) in found]
    classes = tuple(sorted({c for table in found.values() for c in table.classes}))
    position = {cost_class: index for index, cost_class in enumerate(classes)}
    work = {n: np.zeros((len(kept), len(classes))) for n in ClassWork.__slots__}
    families = []
    for index, row in enumerate(kept):
        table = found[_key(row)]
        columns = [position[c] for c in table.classes]
        for name, values in work.items():
            values[index, columns] = getattr(table.work(row.batch_size), name)
        families.append(intervals.model_family(table))
    cards = [(row.slug, tf32_allowed(row.precision)) for row in kept]
    distinct = sorted(set(cards))
    settings = [
        step.Setting(
            execution=r.execution,
            mode=r.mode,
            transformer=family == "transformer",
            fused_optimizer=not is_single(r.precision),
            channels_last=r.channels_last,
        )
        for r, family in zip(kept, families, strict=True)
    ]
    different = sorted(set(settings), key=repr)
    return Design(
        rows=tuple(kept),
        families=tuple(families),
        classes=classes,
        work=ClassWork(**work),
        cards=kernel_time.targets([(find(slug), tf32) for slug, tf32 in distinct], sustained),
        card_index=np.array([distinct.index(card) for card in cards]),
        settings=tuple(different),
        setting_index=np.array([different.index(setting) for setting in settings]),
        log_step=np.log([row.step_s for row in kept]),
    )


def _tables(rows: Sequence[Row], folder: Path) -> dict[object, KernelTable]:
    """The kernels of every kind of run among the rows, by ``_key``."""
    records: dict[object, Record | None] = {}
    found: dict[object, KernelTable] = {}
    for row in rows:
        named = (row.record, row.precision)
        if named not in records:
            records[named] = read_record(folder, row.record, row.precision)
        record = records[named]
        if record and _key(row) not in found:
            found[_key(row)] = KernelTable.of(
                program_of(
                    record,
                    row.execution,
                    row.accumulation,
                    fused_attention=row.fused_attention,
                )
            )
    return found


def _key(row: Row) -> object:
    by_operation = row.execution in BY_OPERATION
    return (row.record, row.precision, by_operation, row.accumulation, row.fused_attention)
