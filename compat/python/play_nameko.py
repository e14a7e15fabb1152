"""nameko: services in this process, called by RPC and by events."""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()


from typing import Any  # noqa: E402

from nameko.containers import ServiceContainer  # noqa: E402
from nameko.events import EventDispatcher, event_handler  # noqa: E402
from nameko.rpc import rpc  # noqa: E402
from nameko.standalone.events import event_dispatcher  # noqa: E402
from nameko.standalone.rpc import ClusterRpcProxy  # noqa: E402
from protocol import PATIENCE_S, URL, WRONG_URL, main, name  # noqa: E402

SETTINGS = {"AMQP_URI": URL, "rpc_exchange": name("rpc"), "serializer": "json"}
SERVICE = name("service").replace(".", "_").replace("-", "_")
heard: list[Any] = []


class Service:
    name = SERVICE
    dispatch = EventDispatcher()

    @rpc
    def upper(self, text: str) -> str:
        return text.upper()

    @rpc
    def fails(self) -> None:
        raise ValueError("no")

    @rpc
    def tell(self, text: str) -> None:
        self.dispatch("told", text)

    @event_handler(SERVICE, "told")
    def hear(self, text: str) -> None:
        heard.append(text)


class Running:
    def __enter__(self) -> Any:
        self.container = ServiceContainer(Service, SETTINGS)
        self.container.start()
        self.proxy = ClusterRpcProxy(SETTINGS, timeout=PATIENCE_S)
        return getattr(self.proxy.start(), SERVICE)

    def __exit__(self, *_: object) -> None:
        self.proxy.stop()
        self.container.stop()


def connect() -> None:
    with Running() as service:
        assert service.upper("hello") == "HELLO"


def rpc_scenario() -> None:
    with Running() as service:
        asked = [service.upper.call_async(f"q{number}") for number in range(20)]
        assert [one.result() for one in asked] == [f"Q{number}" for number in range(20)]
        try:
            service.fails()
        except Exception as error:
            assert "no" in str(error), error
        else:
            raise AssertionError("no error came back")


def topology() -> None:
    """Events: a topic exchange of the service, and a durable queue of its handler."""
    heard.clear()
    with Running() as service:
        service.tell("one")
        event_dispatcher(SETTINGS)(SERVICE, "told", "two")
        with eventlet.Timeout(PATIENCE_S):
            while len(heard) < 2:
                eventlet.sleep(0.02)
    assert sorted(heard) == ["one", "two"], heard


def large() -> None:
    body = "0123456789abcdef" * ((1 << 20) - 64)
    with Running() as service:
        assert service.upper(body) == body.upper()


def wrong_password() -> None:
    try:
        ClusterRpcProxy({**SETTINGS, "AMQP_URI": WRONG_URL}).start()
    except Exception as error:
        assert "403" in str(error) or "ACCESS_REFUSED" in str(error) or "Login" in str(error), repr(error)
    else:
        raise AssertionError("not refused")


main({"connect": connect, "topology": topology, "rpc": rpc_scenario, "large": large, "wrong_password": wrong_password})
