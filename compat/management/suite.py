"""The HTTP API as a suite of the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api, get
from compat.management.playing import play
from compat.management.routes import of_amqp_broker, of_rabbitmq
from compat.oracle.comparing import fields
from compat.oracle.suite import Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until

PLUGINS = (
    "rabbitmq_management",
    "rabbitmq_event_exchange",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
)
ROUTES = "routes/methods by path"
SETTINGS = ("collect_statistics_interval = 500", "management.rates_mode = detailed")


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    answers = play(Api(broker), lambda api: wait_until(lambda: has_caught_up(api), 60))
    yield {**answers, ROUTES: of_rabbitmq(broker)}


def has_caught_up(api: Api) -> bool:
    """Return whether RabbitMQ's statistics include all objects."""
    # Since 4.0, only the first list has all columns; before, it does not exist.
    detailed = api.ask(get("queues/detailed"))
    rows = detailed.value if detailed.status == 200 else api.get("queues")
    queues = {queue["name"]: queue for queue in rows}
    channels = api.get("channels")
    return bool(
        # The process of each queue reports these later than its counts.
        all("policy" in queue for queue in rows)
        and all("garbage_collection" in queue for queue in rows if queue["type"] != "stream")
        and queues["qq"].get("messages") == 1
        and "message_bytes" in queues["qq"]
        and queues["q1"].get("messages") == 5
        # Version 2 of classic queues, that of RabbitMQ 4, does not report it.
        and ("idle_since" in queues["q1"] or queues["q1"].get("storage_version") == 2)
        and queues["q2"].get("message_stats", {}).get("deliver_get") == 1
        and queues["qs"].get("readers") is not None
        and len(channels) == 3
        and channels[1].get("message_stats", {}).get("confirm") == 1
        and api.get("overview")["message_stats"].get("confirm") == 1
    )


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    # RabbitMQ runs without this plugin.
    broker.options += ("--no-prometheus",)
    with broker.running():
        yield {**play(Api(broker)), ROUTES: of_amqp_broker()}


MANAGEMENT = Suite("management", _answers, _own_answers, fields, plugins=PLUGINS, settings=SETTINGS, has_areas=True)
