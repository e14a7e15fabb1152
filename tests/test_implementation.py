from __future__ import annotations

import os

from amqp_broker.implementation import implementation


def test_the_build_that_is_tested_is_the_one_that_was_asked_for() -> None:
    is_compiled = os.environ.get("AMQP_BROKER_COMPILED") == "1"
    assert implementation() == ("compiled" if is_compiled else "pure Python")
