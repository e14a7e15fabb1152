"""The report for CI servers."""

from __future__ import annotations

from xml.etree import ElementTree

from amqp_broker.conformance.junit_report import junit_report
from tests.conformance.sample_results import sample_results


def test_the_document_has_each_verdict() -> None:
    root = ElementTree.fromstring(junit_report(sample_results()))
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("skipped")) == ("testsuites", "3", "1", "1")
    (suite,) = root
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("Ttl", "3", "1")
    agreed, differing, skipped = suite
    assert (agreed.get("classname"), agreed.get("name"), len(agreed)) == ("conformance.ttl", "a_message_agrees", 0)
    assert [(child.tag, child.get("message")) for child in skipped] == [("skipped", "the broker has no <streams>")]
    (failure,) = differing
    assert (failure.tag, failure.get("message")) == ("failure", "basic.get-ok redelivered; more: not expected")


def test_a_failure_is_a_diff_without_characters_that_xml_excludes() -> None:
    root = ElementTree.fromstring(junit_report(sample_results()))
    (failure,) = root.iter("failure")
    assert (failure.text or "").splitlines() == [
        "--- RabbitMQ 4.3",
        "+++ this broker",
        "  a1> basic.get queue='<q>'",
        "- a1< basic.get-ok redelivered=false",
        "+ a1< basic.get-ok redelivered=true\ufffd",
        "  a1<     body=b'&'",
        "+ a1< more",
    ]
