from __future__ import annotations

from pamqp import commands

from amqp_broker.broker.counting.incident import RECENT_MS
from amqp_broker.broker.observe.incidents import BATCH, CLIENTS_MAX, LOSSES_MIN, LOSSES_MS, Client
from amqp_broker.broker.scheduling.portions import finished
from tests.peer import Lab, Peer


def look(lab: Lab) -> None:
    lab.broker.collect_counts()
    finished(lab.broker.incidents.look())


def rejecting(lab: Lab, **arguments: object) -> Peer:
    """A client that has rejected two messages of queue `q`."""
    peer = lab.connect()
    peer.declare("q", arguments=arguments)
    for _ in range(2):
        peer.publish("q")
        assert peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))
    return peer


def lose(lab: Lab, name: str, vhost: str = "/") -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, channel=0)
    peer.send(commands.Connection.StartOk({"connection_name": name}, "PLAIN", "\0guest\0guest"), channel=0)
    peer.expect(commands.Connection.Tune, channel=0)
    peer.send(commands.Connection.TuneOk(2047, 131072, 0), commands.Connection.Open(vhost), channel=0)
    peer.disconnect()


def test_messages_that_a_queue_gives_up_are_an_incident_by_reason() -> None:
    lab = Lab()
    rejecting(lab)
    look(lab)
    incidents = lab.vhost.queues["q"].statistics.incidents
    assert {reason: one.count for reason, one in incidents.deaths.items()} == {"rejected": 2}


def test_purged_messages_are_no_incident() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q")
    peer.call(commands.Queue.Purge(queue="q"))
    look(lab)
    assert lab.vhost.queues["q"].statistics.incidents is None


def test_messages_that_no_queue_gets_are_an_incident_of_their_exchange() -> None:
    lab = Lab()
    peer = lab.connect()
    for _ in range(3):
        peer.publish("ordrs")
    look(lab)
    assert lab.vhost.exchanges[""].unroutable.count == 3


def test_a_message_for_subscribers_that_are_away_is_no_incident() -> None:
    lab = Lab()
    lab.connect().publish("any", exchange="amq.fanout")
    look(lab)
    assert lab.vhost.exchanges["amq.fanout"].unroutable is None


def test_messages_before_the_first_subscriber_are_no_incident_after_it() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.publish("any", exchange="amq.fanout")
    peer.declare("q")
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.fanout"))
    look(lab)
    assert lab.vhost.exchanges["amq.fanout"].unroutable.count == 0
    peer.call(commands.Queue.Unbind(queue="q", exchange="amq.fanout"))
    peer.publish("any", exchange="amq.fanout")
    look(lab)
    assert lab.vhost.exchanges["amq.fanout"].unroutable.count == 1


def test_a_scan_looks_at_a_portion_of_the_queues() -> None:
    lab = Lab()
    peer = lab.connect()
    for number in range(BATCH):
        peer.declare(f"q{number}")
    rejecting(lab)

    def scanned() -> bool:
        lab.broker.incidents.scan()
        return lab.vhost.queues["q"].statistics.incidents is not None

    assert [scanned(), scanned()] == [False, True]


def test_a_scan_begins_anew_when_all_are_looked_at() -> None:
    lab = Lab()
    lab.broker.incidents.scan()
    rejecting(lab)
    lab.broker.incidents.scan()
    assert lab.vhost.queues["q"].statistics.incidents.deaths["rejected"].count == 2


def test_connections_lost_one_after_the_other_are_an_incident_of_their_client() -> None:
    lab = Lab()
    for number in range(LOSSES_MIN):
        assert not list(lab.broker.incidents.clients())
        lab.now += 1000 * number
        lose(lab, "worker")
    [(word, client, losses)] = lab.broker.incidents.clients()
    assert (word, client) == ("lost", Client("/", "guest", "worker", "127.0.0.1"))
    assert (losses.incident.count, losses.reason) == (LOSSES_MIN, "client unexpectedly closed TCP connection")
    assert losses.incident.last_ms - losses.incident.first_ms == 3000
    lose(lab, "worker")
    assert losses.incident.count == LOSSES_MIN + 1


def test_losses_far_from_each_other_are_no_incident() -> None:
    lab = Lab()
    for _ in range(2 * LOSSES_MIN):
        lab.now += LOSSES_MS // (LOSSES_MIN - 1) + 1
        lose(lab, "worker")
    assert not list(lab.broker.incidents.clients())


def test_an_incident_of_a_client_is_over_after_a_time() -> None:
    lab = Lab()
    for _ in range(LOSSES_MIN):
        lose(lab, "worker")
    assert list(lab.broker.incidents.clients())
    lab.broker.now += RECENT_MS
    assert not list(lab.broker.incidents.clients())


def test_connections_that_clients_close_are_no_incident() -> None:
    lab = Lab()
    for _ in range(2 * LOSSES_MIN):
        peer = lab.connect()
        peer.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
        peer.disconnect()
    assert not list(lab.broker.incidents.clients())


def test_connections_that_the_broker_closes_for_an_error_are_an_incident() -> None:
    lab = Lab()
    for _ in range(LOSSES_MIN):
        peer = lab.connect()
        peer.send(commands.Channel.Open(), channel=1)
        peer.expect_connection_close(504)
        peer.disconnect()
    [(_, _, losses)] = lab.broker.incidents.clients()
    assert losses.reason == "CHANNEL_ERROR - second 'channel.open' seen"


def test_clients_that_are_not_let_in_are_an_incident() -> None:
    lab = Lab()
    for _ in range(LOSSES_MIN):
        lose(lab, "worker", vhost="nowhere")
        peer = lab.peer("10.0.0.7")
        peer.send_bytes(b"AMQP\x00\x00\x09\x01")
        peer.send(commands.Connection.StartOk({}, "PLAIN", "\0guest\0wrong"), channel=0)
    found = {client.name or client.host: losses.reason for _, client, losses in lab.broker.incidents.clients()}
    assert found == {
        "worker": "NOT_ALLOWED - vhost nowhere not found",
        "10.0.0.7": "user 'guest' - invalid credentials",
    }


def test_the_oldest_client_is_forgotten_for_one_more() -> None:
    lab = Lab()
    for number in range(CLIENTS_MAX + 2):
        lose(lab, f"worker {number}")
    assert len(lab.broker.incidents.lost) == CLIENTS_MAX
    assert next(iter(lab.broker.incidents.lost)).name == "worker 2"


def test_a_message_that_is_rejected_again_and_again_is_an_incident_of_its_queue() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
    peer.declare(
        "wait", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work", "x-message-ttl": 5}
    )
    peer.publish("work")
    for _ in range(12):
        assert peer.get("work", no_ack=False)
        peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))
        lab.advance(10)
    incidents = lab.vhost.queues["work"].statistics.incidents
    assert (incidents.rounds, incidents.circling.count) == (12, 3)
    look(lab)
    assert lab.vhost.queues["wait"].statistics.incidents.rounds == 0


def failed(peer: Peer, method: commands.Basic.Consume | commands.Queue.Declare | commands.Exchange.Declare) -> None:
    peer.open_channel(7)
    peer.send(method, channel=7)
    peer.expect(commands.Channel.Close, channel=7)
    peer.send(commands.Channel.CloseOk(), channel=7)


def test_one_channel_that_an_error_closes_is_an_incident() -> None:
    lab = Lab()
    failed(lab.connect(), commands.Basic.Consume(queue="none"))
    [(word, client, losses)] = lab.broker.incidents.clients()
    assert (word, client.host, losses.incident.count) == ("closed", "127.0.0.1", 1)
    assert losses.reason == "NOT_FOUND - no queue 'none' in vhost '/'"
    lab.broker.now += RECENT_MS
    assert list(lab.broker.incidents.clients()) == []


def test_a_passive_declaration_that_finds_nothing_is_no_incident() -> None:
    lab = Lab()
    peer = lab.connect()
    failed(peer, commands.Queue.Declare(queue="none", passive=True))
    failed(peer, commands.Exchange.Declare(exchange="none", passive=True))
    assert list(lab.broker.incidents.clients()) == []
