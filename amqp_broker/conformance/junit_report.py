"""The report as JUnit's XML, which CI servers show.

A chapter is a test suite, a scenario a test case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.results import Results, Row, side_by_side

# Characters that XML 1.0 excludes.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(results: Results) -> bytes:
    """Return the document in UTF-8."""
    root = Element(
        "testsuites",
        name=f"conformance of {results.broker}",
        tests=str(len(results.judged)),
        failures=str(results.count(Verdict.DIFFERS)),
        skipped=str(results.count(Verdict.SKIPPED)),
        time=f"{results.duration_s:.3f}",
    )
    for chapter in results.chapters():
        suite = SubElement(
            root,
            "testsuite",
            name=chapter.title,
            tests=str(len(chapter.judged)),
            failures=str(chapter.count(Verdict.DIFFERS)),
            errors="0",
            skipped=str(chapter.count(Verdict.SKIPPED)),
        )
        for one in chapter.judged:
            _add(suite, one)
    indent(root)
    return bytes(tostring(root, "utf-8", xml_declaration=True))


def _add(suite: Element, judged: Judged) -> None:
    case = SubElement(suite, "testcase", classname=f"conformance.{judged.scenario.area}", name=judged.scenario.name)
    if judged.verdict is Verdict.SKIPPED:
        SubElement(case, "skipped", message=judged.reason)
    elif judged.verdict is Verdict.DIFFERS:
        failure = SubElement(case, "failure", message=_NOT_XML.sub("�", "; ".join(judged.places)))
        lines = [line for row in side_by_side(judged.expected, judged.seen) for line in _diff(row)]
        head = f"--- RabbitMQ {judged.oracle}\n+++ this broker\n"
        failure.text = _NOT_XML.sub("�", head + "\n".join(lines))


def _diff(row: Row) -> Iterator[str]:
    """Yield a row as the lines of a diff."""
    if not row.differs:
        yield f"  {row.seen}"
        return
    if row.expected is not None:
        yield f"- {row.expected}"
    if row.seen is not None:
        yield f"+ {row.seen}"
