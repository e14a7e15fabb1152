from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.run_report.page import Failure, check, failure_section, page, remove, write
from tests.broker_parts import bind, new_exchange, new_queue
from tests.run_report.reporting import logging_lab, report_of


class Reader(HTMLParser):
    """Reads the texts of a page, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    @property
    def text(self) -> str:
        return " ".join(self.words)


def section(report: dict[str, Any], name: str = "test_it") -> str:
    return failure_section(Failure(name, "assert 1 == 2", [("Traceback", "line 1"), ("Captured", " ")], [report]))


def failed() -> dict[str, Any]:
    """Return the report of a vhost with a ready message, a lost one and an acknowledged one."""
    lab = logging_lab()
    peer = lab.connect()
    peer.send(commands.Queue.Declare(queue="orders"), commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", routing_key="none"))
    for key, body in (("orders", b"first"), ("order", b"second"), ("orders", b"\xff")):
        peer.publish(key, body, message_id="m-1")
    peer.send(commands.Basic.Get(queue="orders"), commands.Basic.Ack(1))
    return report_of(lab, moved_ms=90_000, is_frozen=True)


def test_a_section_has_the_assertion_then_facts_messages_and_topology() -> None:
    text = Reader(section(failed())).text
    places = [
        *("test_it", "assert 1 == 2", "Fault 1, confirm_nack on publish (routing_key='none'), hit nothing"),
        *("The clock was moved by 1.5 min and the clock is frozen; it was ", "connection 127.0.0.1:"),
        *("Message 1 acknowledged in orders", "m-1", "5 bytes first"),
        *("Message 2 in no queue", "No queue was bound with the key 'order': did you mean 'orders'?"),
        *("Message 3 ready in orders", "1 byte, in base64 /w=="),
        *("Topology", "orders classic 1 0 0", "The events of these messages in the order of time", "Traceback line 1"),
    ]
    found = [text.find(place) for place in places]
    assert -1 not in found, places[found.index(-1)]
    assert found == sorted(found)
    assert "Captured" not in text


def test_a_vhost_without_messages_queues_or_a_log_says_so() -> None:
    lab = logging_lab()
    text = Reader(section(report_of(lab))).text
    assert "The event log has no message." in text
    assert "There are no queues." in text
    lab.broker.event_logs.stop_all()
    assert "The virtual host had no event log." in Reader(section(report_of(lab))).text


def test_several_vhosts_have_their_names() -> None:
    report = report_of(logging_lab())
    html = failure_section(Failure("make test", "exit code 1", [], [report, {**report, "vhost": "other"}]))
    assert "Virtual host / " in Reader(html).text
    assert "Virtual host other" in Reader(html).text


def test_a_page_links_its_sections_and_loads_nothing() -> None:
    names = ["test_a[<b>]", "test_b"]
    reader = Reader(page("2 failed tests", [section(failed(), name) for name in names], names))
    links = [attributes["href"] for tag, attributes in reader.elements if tag == "a"]
    assert links == ["#f1", "#f2"]
    assert [attributes["id"] for tag, attributes in reader.elements if tag == "article"] == ["f1", "f2"]
    assert {tag for tag, _ in reader.elements} & {"script", "link", "img", "iframe"} == set()
    assert not any("src" in attributes or "onclick" in attributes for _, attributes in reader.elements)


def test_markup_in_names_and_bodies_is_text() -> None:
    lab = logging_lab()
    peer = lab.connect()
    attack = "<script>hit()</script>\"'"
    bind(new_exchange(lab.vhost, attack, "topic"), new_queue(lab.vhost, attack), lab.vhost, attack)
    bind(new_exchange(lab.vhost, "a"), lab.vhost.exchanges[attack], lab.vhost, attack)
    peer.publish(attack, attack.encode(), exchange="a", message_id=attack)
    peer.publish(attack + "?", attack.encode(), exchange="a")
    html = page(attack, [failure_section(Failure(attack, attack, [(attack, attack)], [report_of(lab)]))], [attack])
    assert "script" not in {tag for tag, _ in Reader(html).elements}


def test_a_page_is_written_into_a_new_folder_and_removed_after_a_run_without_failures(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "report.html"
    check(path)
    write(path, "1 failed test", [("test_it\ud800", section(failed()))])
    assert path.read_text("utf-8").startswith("<!doctype html>")
    remove(path)
    assert not path.exists()
    remove(path)


@pytest.mark.parametrize(
    ("content", "is_kept"), [(b"<!doctype html>\xff", True), (b"", False), (b"import pika\n", True)]
)
def test_another_file_is_neither_removed_nor_overwritten(content: bytes, is_kept: bool, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_bytes(content)
    remove(path)
    assert path.exists()
    if is_kept:
        with pytest.raises(FileExistsError, match="it exists, and is no report of an earlier run"):
            check(path)
    else:
        check(path)


def test_a_report_of_an_earlier_run_may_be_overwritten(tmp_path: Path) -> None:
    write(tmp_path / "report.html", "1 failed test", [("test_it", "")])
    check(tmp_path / "report.html")


def test_a_page_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        check(tmp_path)
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(NotADirectoryError, match="file is no folder"):
        check(tmp_path / "file" / "report.html")


def test_the_folder_of_a_page_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="its folder is read-only"):
        check(tmp_path / "new" / "report.html")


def test_a_remark_says_why_there_is_no_report() -> None:
    text = Reader(failure_section(Failure("test_it", "assert 1 == 2", remark="The broker is gone."))).text
    assert text == "test_it assert 1 == 2 The broker is gone."


def test_a_long_life_lists_its_first_and_last_events() -> None:
    lab = logging_lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"\xc3\xa9" * 600)
    for tag in range(1, 41):
        peer.send(commands.Basic.Get(queue="q"), commands.Basic.Reject(tag, requeue=True))
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Ack(41))
    text = Reader(section(report_of(lab))).text
    assert "Message 1 acknowledged in q" in text
    assert "23 events are not listed" in text
    assert "requeued, 40 times" in text or "requeued, 4" in text
    assert "1200 bytes; the first 1000 at most are shown é" in text


@pytest.mark.parametrize(
    ("moved_ms", "is_frozen", "words"),
    [
        (0, False, None),
        (-3, True, "The clock is frozen; it was"),
        (1_500, False, "The clock was moved by 1.5 s; it was"),
        (1_800_000, False, "The clock was moved by 30 min; it was"),
        (30 * 86_400_000, True, "The clock was moved by 30 days and the clock is frozen; it was"),
    ],
)
def test_a_clock_that_was_moved_or_stopped_is_named(moved_ms: int, is_frozen: bool, words: str | None) -> None:
    text = Reader(section(report_of(logging_lab(), moved_ms=moved_ms, is_frozen=is_frozen))).text
    assert (words in text) if words else ("clock" not in text)
