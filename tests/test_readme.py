"""What the README shows is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import serving

README = Path(__file__).parent.parent / "README.md"

TEST = """

def test_it(amqp_url):
    import pika

    channel = pika.BlockingConnection(pika.URLParameters(amqp_url)).channel()
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"hello")
    assert channel.basic_get("q", auto_ack=True)[2] == b"hello"
"""


def python_blocks() -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 2
    return blocks


def test_the_fixture_of_the_readme_gives_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_readme_fixture.py").write_text(python_blocks()[0] + TEST)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_client_of_the_readme_connects_over_tls(tmp_path: Path) -> None:
    options = ("--tls", "auto", "--data-dir", str(tmp_path / "data"))
    with serving(tmp_path, *options, AMQP_BROKER_EPHEMERAL="false") as broker:
        program = python_blocks()[1].replace("5671", str(broker.ports["amqps"]))
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path / "data" / "tls",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr
