"""Which broker is asked; the commands that ask are in tests/cli/test_clock.py and test_messages.py."""

from __future__ import annotations

import pytest

from amqp_broker.cli.failing import CommandError
from amqp_broker.cli.running import _place_of, ask, lines


def test_an_address_has_guest_and_the_usual_ports_unless_it_says_others() -> None:
    place, name = _place_of("http://localhost")
    assert (place.host, place.port, place.authorization, name) == (
        *("localhost", 15672, "Basic Z3Vlc3Q6Z3Vlc3Q="),
        "localhost:15672",
    )
    place, _ = _place_of("https://u:p%40@there:1")
    assert (place.port, place.authorization, place.tls is not None) == (1, "Basic dTpwQA==", True)
    assert _place_of("https://there")[0].port == 15671


def test_where_nobody_answers_a_sentence_says_so() -> None:
    with pytest.raises(CommandError, match=r"no HTTP API answers at 127\.0\.0\.1:1: "):
        ask("", "http://127.0.0.1:1", "GET", "/_broker/clock")
    with pytest.raises(CommandError, match=r"no HTTP API answers at 127\.0\.0\.1:1: "):
        list(lines("", "http://127.0.0.1:1", "/_broker/recording/%2F", {}))
