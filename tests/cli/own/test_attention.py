from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from amqp_broker.cli.own.attention import text_of
from tests.cli.program import Serving, run, serving


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker"), "--management-port", "0") as broker:
        yield broker


def attention(broker: Serving, *words: str) -> tuple[int, str, str]:
    done = run("attention", *words, "--node", str(broker.port))
    return done.returncode, done.stdout, done.stderr


def test_findings_are_shown_with_time_and_remedy(broker: Serving) -> None:
    assert attention(broker) == (0, "Nothing needs attention.\n", "")
    with broker.client() as client:
        client.open()
        client.publish("nowhere", b"x")
        client.sync()
    code, shown, _ = attention(broker)
    lines = shown.splitlines()
    assert (code, len(lines)) == (0, 3)
    assert lines[0] == (
        "warning: 1 message published to the default exchange reached no queue, such as with routing key 'nowhere'."
    )
    assert lines[1].startswith("  vhost /, since 20")
    assert lines[2] == "  Declare a queue of this name, or publish with the name of another."
    [one] = json.loads(attention(broker, "--json", "--vhost", "/")[1])
    assert one["kind"] == "unroutable"


def test_a_refusal_of_the_broker_is_a_sentence(broker: Serving) -> None:
    assert attention(broker, "--vhost", "typo") == (65, "", "amqp-broker: no vhost 'typo'.\n")


def test_a_finding_without_place_and_time_has_two_lines() -> None:
    finding = {"level": "notice", "sentence": "Ring\x07.", "remedy": "Wait.", "since_ms": None}
    assert text_of(finding) == "notice: 'Ring\\x07.'\n  Wait."
