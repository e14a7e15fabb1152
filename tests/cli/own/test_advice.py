from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.program import Serving, run, serving


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker"), "--management-port", "0") as broker:
        yield broker


def advice(broker: Serving, *words: str) -> tuple[int, str, str]:
    done = run("advice", *words, "--node", str(broker.port))
    return done.returncode, done.stdout, done.stderr


def test_advice_is_shown_and_cleared(broker: Serving) -> None:
    assert advice(broker) == (0, "There is no advice.\n", "")
    with broker.client() as client:
        client.open()
        client.publish("nowhere", b"x")
        client.sync()
        code, told, _ = advice(broker)
        lines = told.splitlines()
        assert (code, lines[0].partition(":")[0], len(lines)) == (0, "unroutable", 3)
        assert "exchange (default)" in lines[1]
        assert "such as with routing key 'nowhere'" in lines[1]
        assert lines[2].endswith("See docs/habits.md#unroutable.")
        [one] = json.loads(advice(broker, "--json", "--vhost", "/")[1])
        assert one["habit"] == "unroutable"
    assert advice(broker, "--clear") == (0, "", "")
    assert advice(broker)[1] == "There is no advice.\n"


def test_a_refusal_of_the_broker_is_a_sentence(broker: Serving) -> None:
    code, told, problem = advice(broker, "--vhost", "typo")
    assert (code, told) == (65, "")
    assert problem == "amqp-broker: no vhost 'typo'.\n"
