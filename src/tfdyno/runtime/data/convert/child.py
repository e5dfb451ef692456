"""Child process: write shards of a data set as TFRecord files, one after the other."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import Skipped
from tfdyno.core.messages.child import Nothing
from tfdyno.core.messages.data import WRITE_SHARDS, WriteShards
from tfdyno.process import child
from tfdyno.runtime.base.software import tensorflow_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Value

_TELL_S = 0.25


def handle(request: WriteShards, progress: child.Progress) -> Nothing:
    """Write all shards of the request.

    Raises:
        UsageError: A part of the source cannot be read, or has changed.
        ToolError: There is no room, or the folder cannot be written.
    """
    progress("importing TensorFlow")
    tensorflow_for("data convert")
    from tfdyno.runtime.data.convert.shard import write_shard

    source = _csv(request) if request.settings.kind == "csv" else _images(request)
    told = _Told(progress)
    for place, shard in enumerate(request.shards, start=1):
        skipped: list[Skipped] = []
        bad = _judge(request, shard.file, skipped)
        write_shard(
            request.folder / shard.file,
            told.counted(source.records(shard, bad), place),
            compression=request.settings.compression,
            journal=request.journal,
            skipped=skipped,
        )
    told.now()
    return Nothing()


def _judge(request: WriteShards, shard: str, skipped: list[Skipped]) -> Callable[[str, str], None]:
    """Return what takes each part of the source that cannot be read: it notes it, or raises."""

    def bad(where: str, why: str) -> None:
        if not request.skip_bad:
            raise UsageError(
                f"{request.source / where} cannot be read",
                why=why,
                remedy="leave such files out with --skip-bad, or mend it and convert anew",
            )
        shown = os.fsencode(where).decode(errors="backslashreplace")
        skipped.append(Skipped(where=shown, why=why, shard=shard))

    return bad


class _Told:
    """Tells now and then how much is written."""

    def __init__(self, progress: child.Progress) -> None:
        self._progress = progress
        self._told_s = 0.0
        self._shard = self._records = self._bytes = 0

    def counted(self, records: Iterator[bytes], shard: int) -> Iterator[bytes]:
        self._shard = shard
        for record in records:
            yield record
            self._records += 1
            self._bytes += len(record)
            if time.monotonic() - self._told_s >= _TELL_S:
                self.now()

    def now(self) -> None:
        self._told_s = time.monotonic()
        told = {"shard": self._shard, "records": self._records, "bytes": self._bytes}
        self._progress(json.dumps(told))


def _images(request: WriteShards) -> Value:
    from tfdyno.runtime.data.convert.images import Images

    return Images(request.source, image_size=request.settings.image_size)


def _csv(request: WriteShards) -> Value:
    from tfdyno.runtime.data.convert.csv_rows import Rows

    assert request.offsets
    return Rows(
        request.source,
        offsets=request.offsets,
        delimiter=request.settings.delimiter,
        features=request.features,
        classes=request.classes,
    )


if __name__ == "__main__":
    child.leave(child.serve(handle, WRITE_SHARDS))
