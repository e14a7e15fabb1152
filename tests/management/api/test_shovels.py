from __future__ import annotations

from amqp_broker.management.node.node import ShovelStatus
from tests.management.asking import Desk, StillNode


class Shovelling(StillNode):
    """A node with two shovels."""

    def __init__(self) -> None:
        super().__init__()
        self.restarted: list[tuple[str, str]] = []

    def shovels(self) -> list[ShovelStatus]:
        return [ShovelStatus("s", "/", "running", {"src_queue": "q"}), ShovelStatus("t", "v", "terminated", {})]

    def restart_shovel(self, vhost: str, name: str) -> bool:
        self.restarted.append((vhost, name))
        return True


def desk(compat: str = "4.2") -> Desk:
    desk = Desk(compat=compat)
    desk.node = Shovelling()
    desk.broker.add_vhost("v")
    return desk


def test_shovels_are_listed_with_their_state() -> None:
    status, (one, other) = desk().get("/api/shovels")
    assert status == 200
    assert (one["name"], one["vhost"], one["state"], one["src_queue"]) == ("s", "/", "running", "q")
    assert other["state"] == "terminated"


def test_the_shovels_of_a_vhost_are_listed() -> None:
    _, [one] = desk().get("/api/shovels/v")
    assert one["name"] == "t"


def test_an_existing_shovel_is_found_and_a_missing_one_is_not() -> None:
    assert desk("3.13").get("/api/shovels/vhost/%2F/s")[1]["type"] == "dynamic"
    assert desk().get("/api/shovels/vhost/%2F/t")[0] == 404


def test_a_shovel_is_shown_as_its_parameter_by_rabbitmq_4() -> None:
    """Seen at RabbitMQ 4.0.5 and 4.3.6; 3.10.8 shows its state."""
    asked = desk()
    asked.broker.vhosts["/"].parameters.set("shovel", "s", {"src-queue": "q"})
    assert asked.get("/api/shovels/vhost/%2F/s") == (
        200,
        {"value": {"src-queue": "q"}, "vhost": "/", "component": "shovel", "name": "s"},
    )


def test_a_shovel_is_restarted() -> None:
    asked = desk()
    assert asked.ask("DELETE", "/api/shovels/vhost/v/t/restart")[0] == 204
    assert isinstance(asked.node, Shovelling)
    assert asked.node.restarted == [("v", "t")]


def test_a_shovel_is_deleted_with_its_parameter() -> None:
    asked = desk()
    asked.broker.vhosts["/"].parameters.set("shovel", "s", {})
    assert asked.ask("DELETE", "/api/shovels/vhost/%2F/s")[0] == 204
    assert asked.broker.vhosts["/"].parameters.of("shovel") == []


def test_a_static_shovel_is_listed_without_a_vhost_and_has_no_page() -> None:
    static = desk()
    static.node.shovels = lambda: [ShovelStatus("x", None, "running", {})]  # type: ignore[method-assign]
    _, [row] = static.get("/api/shovels")
    assert (row["name"], row["type"], "vhost" in row) == ("x", "static", False)
    assert static.get("/api/shovels/v") == (200, [])
    assert static.get("/api/shovels/vhost/v/x")[0] == 404
