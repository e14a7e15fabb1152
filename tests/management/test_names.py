from __future__ import annotations

import pytest

from amqp_broker.management.names import check_name
from amqp_broker.management.request import Refusal


def test_a_name_has_255_octets_at_most() -> None:
    check_name("queue", "é" * 127)
    with pytest.raises(Refusal) as caught:
        check_name("queue", "é" * 128)
    assert caught.value.reason == "queue should be less than 255 bytes, actually was 256\n"
