from __future__ import annotations

import pytest

from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.names import check_name


def test_a_name_has_255_octets_at_most() -> None:
    check_name("queue", "é" * 127)
    with pytest.raises(Refusal) as caught:
        check_name("queue", "é" * 128)
    assert caught.value.reason == "queue should be less than 255 bytes, actually was 256\n"
