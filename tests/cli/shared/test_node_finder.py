from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.cli.shared import node_finder
from amqp_broker.cli.shared.node_finder import NotRunning, UntrustedFolder, find, is_named, port_of
from amqp_broker.control import control_folder
from tests.running import RunningServer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def two(folder: Path) -> Iterator[tuple[RunningServer, RunningServer]]:
    with (
        RunningServer(control=True, node_name="one@localhost") as one,
        RunningServer(control=True, node_name="two@localhost") as two,
    ):
        yield one, two


def environment(folder: Path, **variables: str) -> dict[str, str]:
    return {"AMQP_BROKER_RUNTIME_DIR": str(folder), **variables}


def test_the_only_broker_is_the_default(folder: Path) -> None:
    with RunningServer(control=True, node_name="only@localhost"):
        assert find("", environment(folder)).name == "only@localhost"


def test_one_of_several_brokers_must_be_named(two: tuple[RunningServer, RunningServer], folder: Path) -> None:
    with pytest.raises(NotRunning) as caught:
        find("", environment(folder))
    assert sorted(caught.value.others) == ["one@localhost", "two@localhost"]
    assert find("two", environment(folder)).name == "two@localhost"
    assert find("", environment(folder, RABBITMQ_NODENAME="one@localhost")).name == "one@localhost"
    assert find(str(two[1].port), environment(folder)).name == "two@localhost"
    assert find("", environment(folder, RABBITMQ_NODE_PORT=str(two[0].port))).name == "one@localhost"
    assert find("", environment(folder, AMQP_BROKER_PORT=str(two[1].port))).name == "two@localhost"


def test_brokers_of_one_name_are_selected_by_their_ports(folder: Path) -> None:
    with RunningServer(control=True, node_name="a@b") as one, RunningServer(control=True, node_name="a@b") as two:
        with pytest.raises(NotRunning) as caught:
            find("99", environment(folder))
        assert caught.value.name == "99"
        assert {port_of(find(other, environment(folder))) for other in caught.value.others} == set(caught.value.others)
        assert sorted(caught.value.others) == sorted(str(broker.port) for broker in (one, two))


def test_of_several_brokers_the_one_on_the_usual_port_is_meant(
    two: tuple[RunningServer, RunningServer], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_finder, "USUAL_PORT", str(two[1].port))
    assert find("", environment(folder)).name == "two@localhost"
    assert find("one", environment(folder)).name == "one@localhost"
    with pytest.raises(NotRunning):
        find("three", environment(folder))


def test_a_port_without_a_broker_selects_no_other_broker(folder: Path) -> None:
    with RunningServer(control=True), pytest.raises(NotRunning):
        find("", environment(folder, RABBITMQ_NODE_PORT="1"))


def test_the_socket_of_a_killed_broker_is_ignored(folder: Path) -> None:
    (folder / "1.sock").touch()
    with pytest.raises(NotRunning):
        find("", environment(folder))


def test_a_folder_in_which_another_user_could_answer_is_refused(
    tmp_path: Path,
) -> None:
    folder = Path(control_folder({"TMPDIR": str(tmp_path)}))
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UntrustedFolder, match="is not this user's alone"):
        find("", {"TMPDIR": str(tmp_path)})


def test_root_may_name_the_folder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setattr("os.getuid", lambda: 0)
    with pytest.raises(NotRunning):
        find("", environment(tmp_path))
    monkeypatch.setattr("os.getuid", lambda: 1000)
    with pytest.raises(UntrustedFolder):
        find("", environment(tmp_path))


@pytest.mark.parametrize(
    ("name", "wanted", "is_it"),
    [
        ("rabbit@host", "rabbit", True),
        ("rabbit@host", "rabbit@host", True),
        ("rabbit@host", "rabbit@host.example", True),
        ("rabbit@host", "rabbit@other", False),
        ("rabbit@host", "hare@host", False),
    ],
)
def test_a_node_is_named_with_its_host_or_without(name: str, wanted: str, is_it: bool) -> None:
    assert is_named(name, wanted) is is_it
