"""The demo at a running broker, which the web page starts and stops.

A thread runs the publisher. It connects like any client, as a user of its own in a virtual host of its own, and its
faults concern that virtual host alone. At the end user and virtual host are removed. Each broker has this module, so
it imports the rest of the demo when its page is opened.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.management.node.node import Demo

if TYPE_CHECKING:
    from amqp_broker.demo.demo_choices import DemoChoices
    from amqp_broker.demo.strategies import Strategy
    from amqp_broker.demo.strategy_run import StrategyRun
    from amqp_broker.server.server import Server

T = TypeVar("T")
# The name of the virtual host and of the user, and the mark of what a former demo has left behind.
NAME: Final = "confirm-demo"
PASSWORD_BYTES: Final = 24
ANSWER_S: Final = 30.0
ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}

logger = logging.getLogger("amqp_broker.demo")


def install(server: Server) -> None:
    """Let the web page of a server start the demo."""
    server.node.demo = ServedDemo(server)


class ServedDemo(Demo):
    """The demo of a server. `state` is "none", "running", "stopping", "stopped", "done" or "failed" (`reason`)."""

    def __init__(self, server: Server) -> None:
        self.state = "none"
        self.reason = ""
        self._server = server
        self._figures: dict[str, Any] | None = None
        self._run: StrategyRun | None = None

    def status(self) -> dict[str, Any]:
        from amqp_broker.demo.demo_choices import offered

        return {"state": self.state, "reason": self.reason, "choices": offered(), "figures": self._figures}

    def start(self, given: Mapping[str, Any]) -> None:
        from amqp_broker.demo.demo_choices import DemoChoices

        choices = DemoChoices.from_mapping(given)
        if self.state in ("running", "stopping"):
            raise RuntimeError("a demo is running already")
        broker = ServedBroker(self._server)
        broker.prepare()
        self.state, self.reason, self._figures, self._run = "running", "", None, None
        threading.Thread(target=self._work, args=(broker, choices), name=NAME, daemon=True).start()

    def stop(self) -> None:
        if self.state == "running":
            self.state = "stopping"
            if self._run is not None:
                self._run.stop()

    # In the thread of the publisher

    def _work(self, broker: ServedBroker, choices: DemoChoices) -> None:
        from amqp_broker.demo.strategy_run import Stopped

        # The page shows what happens to the connections of pika.
        logging.getLogger("pika").propagate = False
        state, reason = "done", ""
        try:
            self._run_all(broker, choices)
        except Stopped:
            state, reason = "stopped", broker.problem
        except Exception as error:
            logger.exception("the demo has failed")
            state, reason = "failed", str(error) or type(error).__name__
        try:
            broker.ask(broker.remove)
        except RuntimeError:
            # The broker has ended.
            return
        self.state, self.reason = state, reason

    def _run_all(self, broker: ServedBroker, choices: DemoChoices) -> None:
        results: list[dict[str, Any]] = []
        for strategy in choices.strategies:
            results.append(self._run_one(broker, choices, strategy, results))
            self._figures = {**(self._figures or {}), "results": list(results)}

    def _run_one(
        self, broker: ServedBroker, choices: DemoChoices, strategy: Strategy, results: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Run a strategy to its end, and return its result. Raise Stopped."""
        from amqp_broker.demo.fault_plan import fault_plan
        from amqp_broker.demo.figures import for_page, result
        from amqp_broker.demo.strategy_run import Stopped, StrategyRun

        def show(figures: dict[str, Any]) -> None:
            self._figures = {**for_page(figures), "results": list(results)}
            if not broker.is_running:
                broker.problem = f"the virtual host {NAME} is gone"
                run.stop()

        plan = fault_plan(choices.messages, choices.seed, choices.faults)
        run = StrategyRun(broker, strategy, plan, choices.messages, choices.window, choices.rate, show)
        self._run = run
        if self.state == "stopping":
            raise Stopped
        proof = run.run()
        figures = run.figures()
        show(figures)
        return result(figures, proof.as_dict())


class ServedBroker:
    """The broker as the publisher meets it: an address, and faults in the virtual host of the demo."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._password = server.broker.entropy(PASSWORD_BYTES).hex()
        self.url = self._url()
        self.problem = ""

    # In the loop of the server

    def _url(self) -> str:
        """Return the address of a listener. Raise RuntimeError if there is none without TLS."""
        for listener in self._server.node.listeners():
            if listener.protocol == "amqp":
                host = ANY_ADDRESS.get(listener.host, listener.host)
                place = f"[{host}]" if ":" in host else host
                return f"amqp://{NAME}:{self._password}@{place}:{listener.port}/{quote(NAME, safe='')}"
        raise RuntimeError("the demo needs a listener for AMQP without TLS")

    def prepare(self) -> None:
        """Create the virtual host and its user, instead of those that a killed broker has left behind.

        Raise RuntimeError if others have these names.
        """
        broker = self._server.broker
        vhost, user = broker.vhosts.get(NAME), broker.users.get(NAME)
        if (vhost is not None and vhost.metadata.tags != (NAME,)) or (user is not None and user.tags != (NAME,)):
            raise RuntimeError(f"a virtual host or a user '{NAME}' exists, which the demo has not made")
        self.remove()
        broker.add_vhost(NAME, Metadata("The confirm demo, removed at its end", (NAME,)))
        user = broker.users.add(NAME, self._password, tags=(NAME,))
        broker.users.set_permission(user, NAME, Permission(".*", ".*", ".*"))

    def remove(self) -> None:
        """Remove the user and the virtual host, with its faults."""
        broker = self._server.broker
        if broker.users.get(NAME) is not None:
            broker.users.delete(NAME)
        if NAME in broker.vhosts:
            broker.delete_vhost(NAME)

    # In the thread of the publisher

    def ask(self, question: Callable[[], T]) -> T:
        """Return what the question returns in the loop of the server. Raise its errors."""
        answer: Future[T] = Future()

        def call() -> None:
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)
            self._server.flush()

        self._server.loop.call_soon_threadsafe(call)
        return answer.result(ANSWER_S)

    @property
    def is_running(self) -> bool:
        return NAME in self._server.broker.vhosts

    @property
    def faults(self) -> ServedBroker:
        return self

    def add(self, action: str, **fields: Any) -> Rule:
        """Add a fault rule in the virtual host of the demo, and return it."""
        return self.ask(lambda: self._server.broker.faults.add(Rule(action, **{**fields, "vhost": NAME})))

    def clear(self) -> None:
        """Remove the fault rules of the demo."""
        self.ask(lambda: self._server.broker.faults.clear(NAME))
