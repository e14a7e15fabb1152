"""Workers without this package."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from pyspark_amqp.batch_source import StreamBatch
from pyspark_amqp.format_options import read_source
from tests.pyspark_amqp.reading import SCHEMA

# Without site-packages but pyspark's and pyarrow's, as on a worker.
LOAD = """
import importlib.util, pickle, sys
sys.path += sys.argv[2:]
assert importlib.util.find_spec("pyspark_amqp") is None
from pyspark import SparkFiles
SparkFiles._root_directory, SparkFiles._is_running_on_worker = sys.argv[1], True
reader = pickle.load(sys.stdin.buffer)
print(type(reader).__name__, reader.options.queues, reader.schema.names)
import pika
print(pika.__file__.startswith(sys.argv[1]))
"""


def only(folder: Path, *packages: str) -> str:
    """Create a folder of installed packages that has these of this environment."""
    folder.mkdir()
    for name in packages:
        (folder / name).symlink_to(Path(__import__(name).__file__ or "").parent)
    return str(folder)


def load(tmp_path: Path, *packages: str) -> subprocess.CompletedProcess[bytes]:
    reader = StreamBatch(read_source({"queue": "q", "queueType": "stream"}, is_streaming=False), SCHEMA)
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOAD, str(tmp_path), only(tmp_path / "packages", *packages)],
        input=pickle.dumps(reader),
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )


def test_a_reader_brings_its_package_along(tmp_path: Path) -> None:
    done = load(tmp_path, "pyspark", "py4j", "pyarrow")
    names = "['body', 'offset', 'redelivered', 'message_id', 'error']"
    assert done.stdout.decode() == f"StreamBatch ('q',) {names}\nTrue\n", done.stderr.decode()


def test_a_worker_without_pyarrow_is_reported_with_the_remedy(tmp_path: Path) -> None:
    done = load(tmp_path, "pyspark", "py4j")
    assert b"needs pyarrow in the workers' Python" in done.stderr.splitlines()[-1]
