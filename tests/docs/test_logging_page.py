"""The examples of docs/logging.md work."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from pamqp import commands

from compat.waiting import wait_until
from tests.cli.program import Serving, serving
from tests.client import PROTOCOL_HEADER
from tests.docs.blocks import PROJECT, texts_of

PAGE = PROJECT / "docs" / "logging.md"


def like(text: str) -> str:
    """Return a text without its variable parts."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d", "TIME", text)
    return re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", re.sub(r"duration: '\d+ms'", "duration: 'D'", text))


def live(broker: Serving) -> None:
    """Connect and disconnect a client with a name."""
    client = broker.client()
    client.send_bytes(PROTOCOL_HEADER)
    client.expect(commands.Connection.Start, channel=0)
    client.send(commands.Connection.StartOk({"connection_name": "my app"}, "PLAIN", "\0guest\0guest"), channel=0)
    client.expect(commands.Connection.Tune, channel=0)
    client.send(commands.Connection.TuneOk(2047, 131072, 0), channel=0)
    client.call(commands.Connection.Open("/"), channel=0)
    client.call(commands.Connection.Close(200, "", 0, 0), channel=0)
    client.close()


def test_the_lines_that_the_page_shows_are_logged(tmp_path: Path) -> None:
    startup, life = texts_of(PAGE, "text")
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        live(broker)
        wait_until(lambda: "closing AMQP" in broker.output)
        logged = [like(line) for line in broker.output.splitlines()]
    assert [line for line in like(startup).splitlines() if line not in logged] == []
    assert [line for line in like(life).splitlines() if not any(told.endswith(f"> {line}") for told in logged)] == []


def test_the_file_that_the_page_configures_is_written(tmp_path: Path) -> None:
    folder, conf = tmp_path / "logs", tmp_path / "rabbitmq.conf"
    conf.write_text(texts_of(PAGE, "ini")[0].replace("log.dir = logs", f"log.dir = {folder}"), "utf-8")
    with serving(tmp_path, "--host", "127.0.0.1", "--config", str(conf)) as broker:
        live(broker)
        wait_until(lambda: "closing AMQP" in (folder / "broker.log").read_text("utf-8"))
        assert broker.output == ""
        (folder / "broker.log").rename(folder / "broker.log.1")
        assert broker.end() == 0
    lines = (folder / "broker.log.1").read_text("utf-8").splitlines()
    [shown] = texts_of(PAGE, "json")
    [told] = [line for line in lines if "accepting AMQP" in line]
    assert like(told) == like(shown).strip()
    assert {*json.loads(lines[0])} == {*json.loads(shown)}


def test_the_configuration_for_an_embedding_program_is_valid() -> None:
    [program] = texts_of(PAGE, "python")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
