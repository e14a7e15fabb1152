"""Files below a folder or an address of an object store, for pyarrow. A new file appears when it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem


class _Octets:
    """A stream of deltalake, which takes `bytes` only; pyarrow writes buffers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, octets: Any) -> int:
        count: int = self._stream.write(bytes(octets))
        return count


class _Handler(DeltaStorageHandler):
    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.PythonFile:
        return pa.PythonFile(_Octets(self._handler.open_output_stream(path, None)))


def files_at(place: str, options: Mapping[str, str]) -> PyFileSystem:
    """Return the files of a place; `options` are those of deltalake for its store."""
    if "://" not in place:
        Path(place).mkdir(parents=True, exist_ok=True)
    return PyFileSystem(_Handler(place, dict(options)))
