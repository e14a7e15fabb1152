"""Files of a lake appear whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from amqp_broker.pipeline.lake_files import files_at


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    files = files_at(str(tmp_path / "new"), {})
    with files.open_output_stream("a/b") as file:
        file.write(b"12")
        file.write(pa.py_buffer(b"345"))
        assert not (tmp_path / "new" / "a" / "b").exists()
    assert (tmp_path / "new" / "a" / "b").read_bytes() == b"12345"
    with files.open_input_stream("a/b") as file:
        assert file.read() == b"12345"
