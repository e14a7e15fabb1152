"""Readers and writers that bring this package to Spark's workers, which may run on hosts without it.

Spark pickles a reader or a writer into the tasks of a query. They contain the sources of this package and of pika, and
a function that makes them importable where they are not installed.
"""

from __future__ import annotations

import inspect
import io
import pickle
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar, cast

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
def archive(modules: tuple[str, ...] = ()) -> bytes:
    """Return the sources of this package, of pika and of other modules as a ZIP archive."""
    sources: dict[str, Path] = {}
    for folder in (Path(__file__).parent, Path(pika.__file__).parent):
        sources |= {path.relative_to(folder.parent).as_posix(): path for path in sorted(folder.rglob("*.py"))}
    for name in modules:
        path = Path(inspect.getfile(sys.modules[name]))
        sources[name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")] = path
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for place, path in sources.items():
            # With a fixed time, so that equal sources are an equal archive.
            packed.writestr(zipfile.ZipInfo(place), path.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return made.getvalue()


class _Call:
    """Unpickled as the result of the call."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


class Shipped:
    """The base of a reader or a writer: its pickle contains this package, and `modules` of other packages."""

    modules: ClassVar[tuple[str, ...]] = ()

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
