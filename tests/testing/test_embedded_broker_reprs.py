"""The objects of a failed test, as pytest shows them."""

from __future__ import annotations

import re

from amqp_broker.testing import Criteria, EmbeddedBroker
from amqp_broker.testing.external_broker import ExternalBroker, ExternalVHost


def test_a_broker_shows_its_address_and_version() -> None:
    broker = EmbeddedBroker(compat="4.3")
    assert re.fullmatch(r"<EmbeddedBroker like RabbitMQ 4\.3\.\d+, not running>", repr(broker))
    with broker:
        assert repr(broker).endswith(f", at 127.0.0.1:{broker.port}>")


def test_a_vhost_shows_its_queues() -> None:
    with EmbeddedBroker() as broker, broker.vhost("shop") as vhost:
        assert repr(vhost) == "<EmbeddedVHost 'shop', no queues>"
        names = [f"queue {number}" for number in range(7)]
        vhost.import_definitions({"queues": [{"name": name, "durable": True, "arguments": {}} for name in names]})
        shown = "; ".join(f"'{name}': 0 ready, 0 unacked" for name in names[:5])
        assert repr(vhost) == f"<EmbeddedVHost 'shop', {shown}; 2 more queues>"
    assert repr(vhost) == "<EmbeddedVHost 'shop'>"


def test_controls_show_what_they_control() -> None:
    with EmbeddedBroker() as broker, broker.vhost("shop") as vhost:
        broker.clock.freeze()
        assert re.fullmatch(r"<EmbeddedClock \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\+00:00>", repr(broker.clock))
        vhost.faults.add("confirm_nack", times=2)
        assert "action='confirm_nack'" in repr(vhost.faults)
        assert "confirm_nack" not in repr(EmbeddedBroker().faults)
        assert repr(vhost.advice) == "<EmbeddedAdvice []>"
        assert repr(vhost.event_log()) == "<EmbeddedEventLog of vhost 'shop', 0 events>"
        with vhost.capture() as capture:
            pass
        assert repr(capture) == "<EmbeddedCapture of vhost 'shop', 0 messages, 0 skipped>"


def test_an_external_broker_shows_no_password() -> None:
    broker = ExternalBroker("amqp://anna:secret@rabbit:5673")
    assert repr(ExternalVHost(broker, "shop")) == "<ExternalVHost 'shop' of <ExternalBroker amqp://rabbit:5673>>"


def test_criteria_show_what_was_given() -> None:
    assert repr(Criteria(queue="orders", body_json=None)) == "Criteria(queue='orders', body_json=None)"
    assert repr(Criteria(event=None, headers={"a": 1})) == "Criteria(event=None, headers={'a': 1})"
