from __future__ import annotations

from urllib.parse import quote

from pamqp import commands

from amqp_broker.management.api.statistics import iso_time
from tests.management.asking import Desk, declared_anew


def test_an_open_channel_has_its_state_and_counters() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Basic.Qos(prefetch_count=7))
    peer.call(commands.Confirm.Select())
    peer.publish("q")
    peer.publish("nowhere")
    assert [peer.next()[0].delivery_tag for _ in range(2)] == [1, 2]
    peer.call(commands.Basic.Consume(queue="q"))
    (row,) = desk.get("/api/channels")[1]
    told = {key: row[key] for key in ("number", "prefetch_count", "confirm", "transactional", "consumer_count", "user")}
    assert told == {
        "number": 1,
        "prefetch_count": 7,
        "confirm": True,
        "transactional": False,
        "consumer_count": 1,
        "user": "guest",
    }
    assert row["messages_unacknowledged"] == 1
    stats = row["message_stats"]
    assert (stats["publish"], stats["deliver"], stats["drop_unroutable"]) == (2, 1, 1)
    one = desk.get("/api/channels/" + quote(row["name"], safe=""))[1]
    assert one["consumer_details"][0]["queue"] == {"name": "q", "vhost": "/"}
    assert one["publishes"][0]["exchange"] == {"name": "", "vhost": "/"}
    assert one["deliveries"][0]["stats"]["deliver"] == 1
    assert desk.get("/api/vhosts/%2F/channels")[1] == [row]


def test_channels_and_queues_have_the_time_of_their_last_use() -> None:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q")
    times = [desk.get(f"/api/{kind}")[1][0]["idle_since"] for kind in ("channels", "queues")]
    assert times == [iso_time(desk.lab.broker.now)] * 2


def test_listing_channels_with_disable_stats_is_refused() -> None:
    told = Desk().get("/api/channels", disable_stats="true")
    assert told == (400, "Stats in management UI are disabled on this node")


def test_channels_of_other_users_require_the_tag_monitoring() -> None:
    desk = Desk()
    desk.lab.connect()
    path = "/api/channels/" + quote(desk.get("/api/channels")[1][0]["name"], safe="")
    desk.be("management")
    assert desk.get("/api/channels") == (200, [])
    assert desk.get(path) == (401, "User not authorised to access object")
    assert desk.get("/api/channels/nope") == (404, "Not Found")


def test_a_channel_omits_the_counters_of_deleted_objects() -> None:
    desk = Desk()
    for _ in declared_anew(desk):
        (row,) = desk.get("/api/channels")[1]
        told = desk.get("/api/channels/" + quote(row["name"], safe=""))[1]
    assert [one["stats"]["publish"] for one in told["publishes"]] == [1]
    assert [one["stats"]["get_no_ack"] for one in told["deliveries"]] == [1]
    assert row["message_stats"]["publish"] == 2
