"""Shovels start, stop and restart with their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.server.server import Server
from tests.running import RunningServer
from tests.server.shovels import COUNT, depth, fill, shovel, states

SHOVEL = {"src-uri": "amqp:///mine", "src-queue": "q", "dest-queue": "other"}


def test_a_finished_shovel_is_deleted_with_its_parameter() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other", src_delete_after="queue-length")
        here.until(lambda server: depth(server, "other") == COUNT and not list(server.shovels))
        assert here.ask(lambda server: server.broker.vhosts["/"].parameters.of("shovel")) == []
        assert here.ask(lambda server: len(server.broker.connections)) == 0


def test_clearing_a_parameter_stops_its_shovel() -> None:
    with RunningServer() as here, RunningServer() as there:
        fill(here, "q", 1)
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="other")
        there.until(lambda server: depth(server, "other") == 1)
        here.ask(lambda server: server.broker.vhosts["/"].parameters.clear("shovel", "s"))
        there.until(lambda server: not server.broker.connections)
        here.until(lambda server: not server.broker.connections)


def test_deleting_a_vhost_stops_its_shovels() -> None:
    with RunningServer() as here:
        fill(here, "q", 1)
        value = {"src-uri": "amqp:///v", "src-queue": "q", "dest-uri": "amqp:///v", "dest-queue": "other"}

        def start(server: Server) -> None:
            server.broker.add_vhost("v").parameters.set("shovel", "s", value)

        here.ask(start)
        here.until(lambda server: [one.state for one in server.shovels] == ["running"])
        here.ask(lambda server: server.broker.delete_vhost("v"))
        assert states(here) == []


def test_an_invalid_definition_starts_no_shovel() -> None:
    with RunningServer() as here:
        with pytest.raises(InvalidParameter, match="Must specify"):
            shovel(here, dest_uri="amqp://")
        assert states(here) == []


def test_a_restarted_shovel_moves_the_remaining_messages() -> None:
    with RunningServer() as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") > 0)
        assert here.ask(lambda server: server.shovels.restart("/", "s"))
        here.until(lambda server: depth(server, "other") >= COUNT and depth(server, "q") == 0)
        assert not here.ask(lambda server: server.shovels.restart("/", "nobody"))


def test_an_invalid_destination_leaks_no_connections() -> None:
    with RunningServer() as here, RunningServer() as there:
        shovel(here, src_queue="q", dest_uri=f"amqp://127.0.0.1:{there.port}", dest_queue="none", dest_predeclared=True)
        for _ in range(3):
            there.until(lambda server: server.broker.counters.connections_created)
            here.until(lambda server: [one.state for one in server.shovels] == ["terminated"])
            there.until(lambda server: not server.transports)
            here.advance(1000)


def test_a_stopped_node_runs_no_shovels() -> None:
    with RunningServer() as here:
        fill(here, "q", 1)
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") == 1)
        here.ask(lambda server: server.pauses.begin("stopped"))
        here.until(lambda server: server.node.state == "stopped")
        here.advance(5000)
        assert states(here) == [("terminated", "")]
        assert here.ask(lambda server: len(server.broker.connections)) == 0
        here.ask(lambda server: server.pauses.begin("running"))
        here.until(lambda server: [one.state for one in server.shovels] == ["running"])


def test_a_shovel_that_runs_while_no_clients_are_accepted_keeps_its_connections() -> None:
    with RunningServer() as here:
        fill(here, "q", 1)
        shovel(here, src_queue="q", dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: depth(server, "other") == 1)
        before = here.ask(lambda server: set(server.broker.connections))
        here.ask(lambda server: server.pauses.begin("suspended"))
        here.until(lambda server: server.node.state == "suspended")
        here.ask(lambda server: server.pauses.begin("running"))
        here.until(lambda server: server.node.state == "running")
        fill(here, "q", 2)
        here.until(lambda server: depth(server, "other") == 3)
        assert here.ask(lambda server: set(server.broker.connections)) >= before
        assert here.ask(lambda server: server.broker.counters.connections_created) == 4


@pytest.mark.parametrize("uris", [["amqp:///other"], ["amqp:///mine", "amqp:///other"]])
def test_a_shovel_can_only_open_vhosts_of_its_owner(uris: list[str]) -> None:
    def refuse(server: Server) -> None:
        mine = server.broker.add_vhost("mine")
        server.broker.add_vhost("other")
        owner = User("owner", permissions={"mine": Permission()})
        mine.parameters.set("shovel", "s", {**SHOVEL, "dest-uri": "amqp:///mine"}, owner)
        with pytest.raises(InvalidParameter, match='user "owner" may not connect to vhost "other"'):
            mine.parameters.set("shovel", "s", {**SHOVEL, "dest-uri": uris}, owner)

    with RunningServer() as here:
        here.ask(refuse)


@pytest.mark.parametrize(("compat", "is_known"), [("3.13", False), ("4.0", False), ("4.2", True), ("4.3", True)])
def test_a_local_shovel_is_known_from_rabbitmq_4_2_on(compat: str, is_known: bool) -> None:
    given = {"src_protocol": "local", "src_queue": "a", "dest_protocol": "local", "dest_uri": "amqp://"}
    with RunningServer(compat=compat) as here:
        if is_known:
            shovel(here, **given, dest_queue="b")
        else:
            with pytest.raises(InvalidParameter, match=r"from version 4\.2 on"):
                shovel(here, **given, dest_queue="b")
        assert bool(states(here)) is is_known


WRONG = {"x-max-length": "x", "x-dead-letter-exchange": 5, "x-unknown": 1}
MISTAKES = """invalid arg 'x-dead-letter-exchange' in dest-queue-args: {unacceptable_type,long}
invalid arg 'x-max-length' in dest-queue-args: "expected integer, got longstr"
invalid arg 'x-priority' in src-consumer-args: "expected integer, got longstr\""""


def test_wrong_arguments_of_queues_and_consumers_are_refused_at_once_from_rabbitmq_4_3_on() -> None:
    """Seen in RabbitMQ 4.3.6."""
    given: dict[str, Any] = {"dest_uri": "amqp://", "src_queue": "a", "dest_queue": "b"}
    given["src_consumer_args"] = {"x-priority": "high"}
    with RunningServer(compat="4.3") as here:
        with pytest.raises(InvalidParameter) as refusal:
            shovel(here, **given, dest_queue_args=WRONG)
        assert str(refusal.value) == MISTAKES
    with RunningServer(compat="4.2") as here:
        shovel(here, **given, dest_queue_args=WRONG)
        here.until(lambda server: [one.state for one in server.shovels] == ["terminated"])


def test_the_user_of_a_local_end_needs_no_permission_of_the_shovels_owner() -> None:
    local = {"src-protocol": "local", "dest-protocol": "local", "src-queue": "a", "dest-queue": "b"}

    def define(server: Server) -> None:
        vhost = server.broker.add_vhost("other")
        server.broker.users.set_permission(server.broker.users["guest"], "other", Permission())
        owner = User("owner", permissions={"/": Permission()})
        value = {**local, "src-uri": "amqp:///other", "dest-uri": "amqp:///other"}
        server.broker.vhosts["/"].parameters.set("shovel", "s", value, owner)
        assert vhost.queues == {}

    with RunningServer() as here:
        here.ask(define)
        here.until(lambda server: set(server.broker.vhosts["other"].queues) == {"a", "b"})


def test_a_local_destination_confirms_what_the_store_has(tmp_path: Path) -> None:
    local = {"src_protocol": "local", "dest_protocol": "local", "dest_uri": "amqp://"}
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as here:
        fill(here, "q")
        shovel(here, src_queue="q", dest_queue="other", **local)
        here.until(lambda server: (depth(server, "other"), depth(server, "q")) == (COUNT, 0))
        here.until(lambda server: server.broker.vhosts["/"].queues["q"].unacked_count == 0)


def test_the_connections_of_local_links_have_names_of_their_own() -> None:
    with RunningServer() as here:
        for name in ("one", "two"):
            shovel(here, name, src_queue=name, dest_uri="amqp://", dest_queue="other")
        here.until(lambda server: [one.state for one in server.shovels] == ["running", "running"])
        names = here.ask(lambda server: [connection.name for connection in server.broker.connections])
    assert len(set(names)) == 4
