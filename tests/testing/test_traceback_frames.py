from __future__ import annotations

import traceback

import pytest

from amqp_broker.testing import EmbeddedBroker
from amqp_broker.testing.traceback_frames import hide_internal_frames


def test_an_explained_error_ends_in_the_line_of_the_test() -> None:
    with EmbeddedBroker() as broker, pytest.raises(FileNotFoundError) as caught, broker.vhost() as vhost:
        vhost.replay("missing.jsonl")
    hide_internal_frames(caught.value)
    assert {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)} == {__file__}


def test_another_error_keeps_all_frames() -> None:
    with EmbeddedBroker() as broker, pytest.raises(ZeroDivisionError) as caught:
        broker.ask(lambda server: 1 // 0)
    before = traceback.extract_tb(caught.value.__traceback__)
    hide_internal_frames(caught.value)
    assert traceback.extract_tb(caught.value.__traceback__) == before
