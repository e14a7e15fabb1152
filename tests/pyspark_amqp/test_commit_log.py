from __future__ import annotations

from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from pyspark_amqp.commit_log import CommitLog
from pyspark_amqp.errors import OptionError
from tests.pyspark_amqp.reading import planned


def test_a_batch_is_committed_when_its_number_is_in_the_log(tmp_path: Path) -> None:
    log = CommitLog(str(tmp_path), "orders")
    planned(tmp_path, 9, {"orders": 10})
    planned(tmp_path, 10, {"orders": 25})
    assert log.planned(25) == 10
    assert not log.is_committed(10)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/10").touch()
    assert log.is_committed(10)


def test_the_offset_is_found_among_those_of_other_sources(tmp_path: Path) -> None:
    planned(tmp_path, 0, {"others": 25}, 3, {"orders": 25, "others": 1}, {"orders": 4}, "-")
    assert CommitLog(str(tmp_path), "orders").planned(4) == 0


def test_the_checkpoint_of_another_query_is_refused(tmp_path: Path) -> None:
    log = CommitLog(str(tmp_path / "new"), "orders")
    with pytest.raises(OptionError, match=r"'checkpointLocation': .*/new has no batch of 'orders' up to offset 5"):
        log.planned(5)
    planned(tmp_path / "new", 0, {"orders": 4})
    with pytest.raises(OptionError, match="no batch of 'orders' up to offset 5"):
        log.planned(5)


def test_a_query_that_reads_the_queue_twice_is_refused(tmp_path: Path) -> None:
    planned(tmp_path, 0, {"orders": 4}, {"orders": 4})
    with pytest.raises(OptionError, match="has two sources for the queue"):
        CommitLog(str(tmp_path), "orders").planned(4)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_path_may_have_the_forms_that_spark_takes(tmp_path: Path, scheme: str) -> None:
    planned(tmp_path, 0, {"orders": 4})
    assert CommitLog(f"{scheme}{tmp_path}", "orders").planned(4) == 0


def test_a_relative_path_begins_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(tmp_path / "checkpoint", 0, {"orders": 4})
    monkeypatch.chdir(tmp_path)
    assert CommitLog("checkpoint", "orders").planned(4) == 0


def test_an_address_of_an_unknown_kind_is_an_error_of_the_option() -> None:
    with pytest.raises(OptionError, match="option 'checkpointLocation': nope://x: "):
        CommitLog("nope://x", "orders")


def test_a_log_in_an_object_store_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())

    def put(path: str, content: bytes = b"") -> None:
        header = {"Content-Type": "application/octet-stream"}
        urlopen(Request(f"{url}/{path}", content, header, method="PUT"), timeout=10).close()

    for name, value in {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }.items():
        monkeypatch.setenv(name, value)
    try:
        put("lake")
        put("lake/checkpoint/offsets/0", b'v1\n{}\n{"orders":5}')
        log = CommitLog("s3a://lake/checkpoint", "orders")
        assert (log.planned(5), log.is_committed(0)) == (0, False)
        put("lake/checkpoint/commits/0", b"v1\n{}")
        assert log.is_committed(0)
    finally:
        server.stop()
