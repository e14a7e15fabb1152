"""The report as one HTML file, with the frames of each difference side by side.

It loads nothing, so that it can be sent and archived.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.results import Chapter, Results, Row, sentence_of, side_by_side

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #d332; --good: #2a62; --grey: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; } th, td { text-align: left; padding: .15rem .7rem; vertical-align: top; }
.chapters td + td, .chapters th + th { text-align: right; font-variant-numeric: tabular-nums; }
.chapters tr { border-bottom: 1px solid var(--line); } .chapters tr:last-child { font-weight: bold; }
.differ { background: var(--bad); } .places { margin: .2rem 0; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 4px; padding: .3rem .7rem; }
summary { cursor: pointer; } code, .frames td { font: 12.5px/1.45 ui-monospace, monospace; }
.frames { width: 100%; table-layout: fixed; margin: .5rem 0; }
.frames td { overflow-wrap: anywhere; white-space: pre-wrap; border-top: 1px solid var(--line); }
.frames tr.differs td { background: var(--bad); } .frames td.none { background: var(--grey) !important; }
.quiet { opacity: .75; }
"""


def html_report(results: Results) -> str:
    """Return the document."""
    title = f"Conformance of {results.broker}"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *_introduction(results),
            *_table(results),
            *(line for chapter in results.chapters() for line in _chapter(chapter)),
            "</body></html>\n",
        ]
    )


def _introduction(results: Results) -> Iterator[str]:
    played = len(results.judged) - results.count(Verdict.SKIPPED)
    yield f"<p>Compared with {escape(results.compared_with)}. {played} scenarios in {results.duration_s:.0f} s.</p>"
    yield (
        "<p>A scenario is a few methods that a client sends. The broker agrees if each frame of its answers is the "
        "same as RabbitMQ's, with every field and every word. In a transcript, <code>a1&gt;</code> is a method that "
        "connection <code>a</code> sends on its channel 1, and <code>a1&lt;</code> one that it receives; "
        "<code>lab&gt;</code> prepares a scenario. Names that brokers choose, times and settings of a node are "
        "masked.</p>"
    )


def _table(results: Results) -> Iterator[str]:
    yield '<table class="chapters"><tr><th>Chapter<th>agree<th>differ<th>skipped</tr>'
    for chapter in results.chapters():
        link = f'<a href="#{escape(_anchor(chapter))}">{escape(chapter.title)}</a>'
        yield f"<tr><td>{link}{_cells([chapter.count(verdict) for verdict in Verdict])}</tr>"
    yield f"<tr><td>All{_cells([results.count(verdict) for verdict in Verdict])}</tr></table>"


def _cells(counts: list[int]) -> str:
    agree, differ, skipped = counts
    return f"<td>{agree}<td{' class=differ' if differ else ''}>{differ}<td>{skipped}"


def _anchor(chapter: Chapter) -> str:
    return chapter.title.lower().replace(" ", "-")


def _chapter(chapter: Chapter) -> Iterator[str]:
    yield f'<h2 id="{escape(_anchor(chapter))}">{escape(chapter.title)}</h2><p>{escape(chapter.about)}</p>'
    for one in chapter.judged:
        if one.verdict is Verdict.DIFFERS:
            yield from _difference(one)
    yield from _list(chapter, Verdict.SKIPPED, "skipped")
    yield from _list(chapter, Verdict.AGREES, "agree")


def _list(chapter: Chapter, verdict: Verdict, word: str) -> Iterator[str]:
    chosen = [one for one in chapter.judged if one.verdict is verdict]
    if chosen:
        yield f'<details class="quiet"><summary>{len(chosen)} {word}</summary><ul>'
        for one in chosen:
            reason = f": {escape(one.reason)}" if one.reason else ""
            yield f"<li>{escape(sentence_of(one.scenario))}{reason}"
        yield "</ul></details>"


def _difference(judged: Judged) -> Iterator[str]:
    yield f"<details><summary>{escape(sentence_of(judged.scenario))}"
    yield f'<div class="places"><code>{escape("; ".join(judged.places))}</code></div></summary>'
    yield f'<table class="frames"><tr><th>RabbitMQ {escape(judged.oracle)}<th>This broker</tr>'
    for row in side_by_side(judged.expected, judged.seen):
        yield f"<tr{' class=differs' if row.differs else ''}>{_cell(row, row.expected)}{_cell(row, row.seen)}</tr>"
    yield "</table></details>"


def _cell(row: Row, line: str | None) -> str:
    return '<td class="none">' if line is None else f"<td>{escape(line)}"
