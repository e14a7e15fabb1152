"""The report of a run as one HTML file.

It loads nothing and runs no script, so that CI can keep it and anyone can open it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from errno import EACCES, EEXIST, EISDIR, ENOTDIR
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker.run_report.drawing import Graph, shortened
from amqp_broker.run_report.life_graph import life_graph
from amqp_broker.run_report.sentences import clock_words, duration, sentence
from amqp_broker.run_report.texts import shown
from amqp_broker.run_report.topology_graph import topology_graph

STYLE: Final = Path(__file__).with_name("style.css")
# Events of a message that are listed: the first and the last ones. Characters of the value of a property.
FIRST_EVENTS: Final = 40
LAST_EVENTS: Final = 20
VALUE_CHARS_MAX: Final = 1000
# Octets of a body that a report has.
BODY_BYTES: Final = 1000
# It tells a report from other pages, which are not removed.
GENERATOR: Final = '<meta name="generator" content="amqp-broker run report">'
Row = dict[str, Any]


class Failure(NamedTuple):
    """A failed test, or a failed command: its name, the assertion, and texts by title.

    `reports` are those of its vhosts; `remark` says why there is none.
    """

    name: str
    assertion: str
    texts: Sequence[tuple[str, str]] = ()
    reports: Sequence[Row] = ()
    remark: str = ""


def failure_section(failure: Failure) -> str:
    """Return the part of the file about one failure."""
    return "\n".join(
        [
            f"<h2>{shown(failure.name)}</h2>",
            f'<pre class="assertion">{shown(failure.assertion)}</pre>',
            *([f"<p>{shown(failure.remark)}</p>"] if failure.remark else []),
            *(line for report in failure.reports for line in _vhost(report, len(failure.reports) > 1)),
            *(_text(title, text) for title, text in failure.texts if text.strip()),
        ]
    )


def page(title: str, sections: Sequence[str], names: Sequence[str]) -> str:
    """Return the file with the sections of the failures, whose names its list links."""
    made = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    links = "".join(f'<li><a href="#f{number}">{shown(name)}</a>' for number, name in enumerate(names, 1))
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8">{GENERATOR}<title>{shown(title)}</title>',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE.read_text('utf-8')}</style></head><body><main>",
            f'<h1>{shown(title)}</h1><p class="quiet">Written at {made} UTC.</p>',
            f"<ol>{links}</ol>" if len(names) > 1 else "",
            *(f'<article id="f{number}">{section}</article>' for number, section in enumerate(sections, 1)),
            "</main></body></html>\n",
        ]
    )


def _vhost(report: Row, is_named: bool) -> Iterator[str]:
    if is_named:
        yield f"<h3>Virtual host {shown(report['vhost'])}</h3>"
    yield from _facts(report)
    yield "<h3>Messages</h3>"
    yield from _lives(report)
    yield "<h3>Topology</h3>"
    yield from _topology(report)
    events = sorted(
        (event for life in report["lives"] for event in life["events"]), key=lambda event: int(event["sequence"])
    )
    if events:
        yield "<details><summary>The events of these messages in the order of time</summary>"
        yield from _steps(events, is_numbered=True)
        yield "</details>"


def _facts(report: Row) -> Iterator[str]:
    """Yield faults, clock and open connections."""
    words = clock_words(report["clock"])
    clock = [shown(f"{words[0].upper()}{words[1:]}")] if words else []
    facts = [*map(_fault, report["faults"]), *clock, *map(shown, report["connections"])]
    if facts:
        yield '<ul class="facts">'
        yield from (f"<li>{fact}" for fact in facts)
        yield "</ul>"


def _fault(rule: Row) -> str:
    counts = ("id", "action", "on", "matched", "hits", "is_spent", "seed", "vhost", "held", "allowed", "follows")
    given = ", ".join(f"{name}={value!r}" for name, value in rule.items() if name not in counts)
    hits = "hit nothing" if not rule["hits"] else f"hit {rule['hits']} time{'s' if rule['hits'] > 1 else ''}"
    words = f"Fault {rule['id']}, {rule['action']} on {rule['on']}{f' ({given})' if given else ''}, {hits}"
    return f'<span class="fault">{shown(words)}</span>'


def _lives(report: Row) -> Iterator[str]:
    if not report["has_log"]:
        yield "<p>The virtual host had no event log.</p>"
    elif not report["lives"]:
        yield "<p>The event log has no message.</p>"
    if report["lives_skipped"]:
        yield f'<p class="quiet">{report["lives_skipped"]} more messages are not shown.</p>'
    if report["events_skipped"]:
        yield f'<p class="quiet">The log has dropped {report["events_skipped"]} older events.</p>'
    for life in report["lives"]:
        yield from _life(life)


def _life(life: Row) -> Iterator[str]:
    marks = [f'<span class="mark {end["state"]}">{shown(end["words"])}</span>' for end in life["ends"]]
    marks += [f'<span class="mark">and {life["more_ends"]} more</span>'] if life["more_ends"] else []
    yield f'<details class="life" open><summary><b>Message {life["number"]}</b> {" ".join(marks)}</summary>'
    graph = life_graph(life)
    yield _drawing(f"The way of message {life['number']}", graph)
    if graph.hidden:
        yield f'<p class="quiet">{graph.hidden} more boxes do not fit into the picture.</p>'
    if life["events_skipped"]:
        yield f'<p class="quiet">{life["events_skipped"]} later events are not in the picture.</p>'
    if life["hint"]:
        yield f'<p class="hint">{shown(life["hint"][0].upper() + life["hint"][1:])}</p>'
    yield '<div class="columns"><div>'
    yield from _steps(life["events"], is_numbered=False)
    yield "</div><div>"
    yield from _content(life)
    yield "</div></div></details>"


def _drawing(title: str, graph: Graph) -> str:
    """Return a drawing, which the keyboard can scroll if it is wide."""
    return f'<div class="drawing" role="group" tabindex="0" aria-label="{shown(title)}">{graph.svg(title)}</div>'


def _steps(events: Sequence[Row], *, is_numbered: bool) -> Iterator[str]:
    head = "<th>Message" if is_numbered else ""
    yield f'<table class="steps"><tr><th>After{head}<th>Event</tr>'
    start_us = events[0]["time_us"] if events else 0
    left = 0 if is_numbered else len(events) - FIRST_EVENTS - LAST_EVENTS
    for number, event in enumerate(events):
        if left > 0 and number == FIRST_EVENTS:
            yield f'<tr><td><td class="quiet">{left} events are not listed</tr>'
        if left > 0 and FIRST_EVENTS <= number < FIRST_EVENTS + left:
            continue
        tone = ' class="fault"' if event["event"] == "fault" else ""
        message = f"<td>{event['message_number'] or ''}" if is_numbered else ""
        after = duration((event["time_us"] - start_us) / 1000)
        yield f"<tr{tone}><td>{after}{message}<td>{shown(sentence(event))}</tr>"
    yield "</table>"


def _content(life: Row) -> Iterator[str]:
    """Yield why the message is where it is, its properties, and its body."""
    for place in life["places"]:
        yield f"<p><b>{shown(place['queue'])}</b>: {shown(' '.join(place['sentences']))}</p>"
    if life["more_places"]:
        yield f'<p class="quiet">It had to do with {life["more_places"]} more queues.</p>'
    if "payload" not in life:
        return
    properties = {name: shortened(str(value), VALUE_CHARS_MAX) for name, value in life["properties"].items()}
    rows = "".join(f"<tr><th>{shown(name)}<td>{shown(value)}</tr>" for name, value in properties.items())
    if rows:
        yield f'<table class="properties">{rows}</table>'
    # A body that is not text is in base64.
    is_text, size = life["payload_encoding"] == "string", life["payload_bytes"]
    whole = f"{size} byte{'' if size == 1 else 's'}" + ("" if is_text else ", in base64")
    if size > BODY_BYTES:
        whole += f"; the first {BODY_BYTES} at most are shown"
    yield f'<p class="quiet">{whole}</p><pre>{shown(life["payload"])}</pre>'


def _topology(report: Row) -> Iterator[str]:
    if report["more_queues"]:
        yield f'<p class="quiet">{report["more_queues"]} more queues are not shown.</p>'
    if not report["queues"] and not report["exchanges"]:
        yield "<p>There are no queues.</p>"
        return
    graph = topology_graph(report)
    yield _drawing("Exchanges, queues and bindings", graph)
    if graph.hidden:
        yield f'<p class="quiet">{graph.hidden} more queues do not fit into the picture.</p>'
    if report["queues"]:
        yield '<div class="drawing" role="group" tabindex="0" aria-label="Queues">'
        yield '<table class="queues"><tr><th>Queue<th>Type<th>Ready<th>Unacked<th>Consumers<th>Arguments</tr>'
        for queue in report["queues"]:
            arguments = ", ".join(f"{name}: {value}" for name, value in queue["arguments"].items())
            numbers = "".join(f'<td class="number">{queue[name]}' for name in ("ready", "unacked", "consumers"))
            yield f"<tr><td>{shown(queue['name'])}<td>{shown(queue['type'])}{numbers}<td>{shown(arguments)}</tr>"
        yield "</table></div>"


def _text(title: str, text: str) -> str:
    return f"<details><summary>{shown(title)}</summary><pre>{shown(text)}</pre></details>"


def check(path: Path) -> None:
    """Raise OSError if the file cannot be written, or is something else than an earlier report."""
    if path.is_dir():
        raise IsADirectoryError(EISDIR, "it is a folder")
    if path.exists() and path.stat().st_size and not _is_report(path):
        raise FileExistsError(EEXIST, "it exists, and is no report of an earlier run")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(ENOTDIR, f"{folder} is no folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(EACCES, "its folder is read-only")


def write(path: Path, title: str, failures: Sequence[tuple[str, str]]) -> None:
    """Write the file with the names and sections of failures. Raise OSError."""
    names, sections = [name for name, _ in failures], [section for _, section in failures]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(title, sections, names), "utf-8")


def remove(path: Path) -> None:
    """Remove the report of an earlier run, and nothing else. Raise OSError."""
    if path.is_file() and _is_report(path):
        path.unlink()


def _is_report(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return GENERATOR in file.read(1000)
