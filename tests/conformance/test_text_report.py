"""The report on the terminal."""

from __future__ import annotations

import io

from amqp_broker.conformance.results import Results
from amqp_broker.conformance.text_report import Progress, text_report
from tests.conformance.sample_results import sample_results


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_differences_reasons_and_a_table_are_shown() -> None:
    assert list(text_report(sample_results())) == [
        "Ttl: A message differs",
        "  basic.get-ok redelivered; more: not expected",
        "    RabbitMQ    a1< basic.get-ok redelivered=false",
        "    this broker a1< basic.get-ok redelivered=true\x01",
        "    RabbitMQ    (nothing)",
        "    this broker a1< more",
        "",
        "Skipped:",
        "     1  the broker has no <streams>",
        "",
        "Chapter   agree differ skipped",
        "Ttl           1      1       1",
        "All           1      1       1",
    ]


def test_a_run_without_differences_is_a_table() -> None:
    results = Results("", "", 0.0, sample_results().judged[:1])
    assert next(text_report(results)).startswith("Chapter")


def test_the_progress_is_one_line_of_a_terminal() -> None:
    terminal = Terminal()
    progress = Progress(3, terminal)
    for one in sample_results().judged:
        progress.add(one)
    progress.clear()
    assert terminal.getvalue().split("\r\033[K")[1:] == [
        "1 of 3 scenarios, 0 differ",
        "2 of 3 scenarios, 1 differ",
        "3 of 3 scenarios, 1 differ",
        "",
    ]


def test_a_file_gets_no_progress() -> None:
    file = io.StringIO()
    Progress(1, file).add(sample_results().judged[0])
    assert file.getvalue() == ""
