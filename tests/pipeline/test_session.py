from __future__ import annotations

import sys

import pytest

from amqp_broker.pipeline.session import NoSpark, require_spark


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
