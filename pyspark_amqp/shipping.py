"""Readers and writers that bring this package to Spark's workers, which may run on hosts without it.

Spark pickles a reader or a writer into the tasks of a query. They contain the sources of this package and of pika, and
a function that makes them importable where they are not installed.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import pika
from pyspark import cloudpickle


def unpack(archive: bytes, content: bytes) -> object:
    """Return the unpickled reader or writer; runs in a worker, perhaps without this module.

    A package that is installed there takes precedence. Raise ImportError with the remedy if pyarrow is missing.
    """
    import hashlib
    import importlib.util
    import os
    import pickle
    import sys
    from pathlib import Path

    from pyspark import SparkFiles

    if importlib.util.find_spec("pyarrow") is None:
        raise ImportError(
            f"the Spark format 'amqp' needs pyarrow in the workers' Python, {sys.executable}: install it on each host,"
            " or send an environment with it (spark.archives)"
        )
    if any(importlib.util.find_spec(name) is None for name in ("pika", "pyspark_amqp")):
        # The folder of this job on this host.
        path = Path(SparkFiles.getRootDirectory(), f"pyspark_amqp-{hashlib.sha256(archive).hexdigest()[:16]}.zip")
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            new.write_bytes(archive)
            new.replace(path)
        sys.path.append(str(path))
        importlib.invalidate_caches()
    kind, state = pickle.loads(content)
    made: object = kind.__new__(kind)
    made.__dict__.update(state)
    return made


@cache
def archive() -> bytes:
    """Return the sources of this package and of pika as a ZIP archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for folder in (Path(__file__).parent, Path(pika.__file__).parent):
            for path in sorted(folder.rglob("*.py")):
                # With a fixed time, so that equal sources are an equal archive.
                entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix())
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return made.getvalue()


class _Call:
    """Unpickled as the result of the call."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


class Shipped:
    """The base of a reader or a writer: when it is pickled, this package is in it."""

    def __reduce__(self) -> Any:
        content = pickle.dumps((type(self), self.__getstate__()))
        packed: bytes = cloudpickle.dumps(_Call(_by_value(cast(FunctionType, unpack)), archive(), content))  # type: ignore[no-untyped-call]
        return pickle.loads, (packed,)

    def __getstate__(self) -> object:
        return self.__dict__


def _by_value(function: FunctionType) -> FunctionType:
    """Return a copy that cloudpickle pickles with its code, as it does with those of __main__."""
    copy = FunctionType(function.__code__, {"__builtins__": __builtins__}, function.__name__)
    copy.__module__ = "__main__"
    return copy
