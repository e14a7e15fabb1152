"""The shovels of a server: started and stopped as the parameters of component `shovel` change.

The first one imports the code that runs them: most brokers have none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.access import InternalUser, User
from amqp_broker.broker.queues.arguments import wrong_values
from amqp_broker.broker.runtime_parameters import Component

if TYPE_CHECKING:
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.server.server import Server
    from amqp_broker.server.shovel_links import Link
    from amqp_broker.shovel.amqp_client import Client
    from amqp_broker.shovel.shovel import Shovel
    from amqp_broker.shovel.shovel_definition import Definition, Uri

logger = logging.getLogger("amqp_broker.shovel")

# The component of runtime parameters that defines shovels.
SHOVEL: Final = "shovel"
# The version of RabbitMQ with shovels of the protocol `local`; older ones answer 500.
LOCAL_SINCE: Final = (4, 2)
# The version that looks at the arguments of queues and consumers when a shovel is defined; older ones when it starts.
ARGUMENTS_CHECKED_SINCE: Final = (4, 3)


class ShovelRunner(Component):
    """Runs the shovels that parameters of component `shovel` define."""

    def __init__(self, server: Server, static: Mapping[str, Definition]) -> None:
        """`static` are the shovels of the configuration."""
        self.server = server
        self.static = static
        self.user = InternalUser("rmq-shovel")
        self._is_paused = False
        self._shovels: dict[tuple[str, str], Shovel] = {}
        # Those of the configuration, which belong to no vhost.
        self._static: list[Shovel] = []
        self._timers: dict[Shovel, Timer] = {}
        self._loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Start the shovels that the store has restored."""
        self._loop = asyncio.get_running_loop()
        for vhost in self.server.broker.vhosts.values():
            for parameter in vhost.parameters.of(SHOVEL):
                try:
                    self.on_set(vhost.name, parameter.name, parameter.value)
                except InvalidParameter as error:
                    logger.warning("shovel '%s' in vhost '%s': %s", parameter.name, vhost.name, error)

        self._start_static()

    def _start_static(self) -> None:
        """Start the shovels of the configuration. Their vhost is the default one of their URIs."""
        if not self.static:
            return
        from amqp_broker.shovel.shovel import Shovel

        server, now = self.server, self.server.clock.real_now()
        for name, definition in self.static.items():
            shovel = Shovel(name, "/", definition, self, server.broker.cluster_name, self._on_done, now)
            self._static.append(shovel)
            self._loop.call_soon(self._begin, shovel)

    def __iter__(self) -> Iterator[Shovel]:
        return chain(self._static, self._shovels.values())

    def pause(self) -> None:
        """Stop all shovels until `resume`: the node accepts no clients."""
        self._is_paused = True
        for shovel in self:
            shovel.stop()
            self._set_timer(shovel)

    def resume(self) -> None:
        """Start the shovels again."""
        self._is_paused = False
        for shovel in self:
            self._loop.call_soon(self._begin, shovel)

    # Runtime parameters

    def check(self, name: str, value: Any, user: User | None) -> None:
        """Raise InvalidParameter for an invalid definition, or for a vhost of this broker that `user` cannot open."""
        from amqp_broker.shovel.shovel_definition import LOCAL, parse

        definition = parse(name, value)
        ends = definition.source, definition.destination
        if self.server.broker.profile.release < LOCAL_SINCE and LOCAL in [end.protocol for end in ends]:
            raise InvalidParameter("RabbitMQ has the protocol local from version 4.2 on")
        if self.server.broker.profile.release >= ARGUMENTS_CHECKED_SINCE:
            self._check_arguments(definition)
        for uri in (*definition.source.uris, *definition.destination.uris):
            # Links without a host do not log in, so the permissions of the owner apply.
            is_trusted = uri.is_local and not uri.is_loopback
            if user is not None and is_trusted and uri.vhost is not None and not user.can_open(uri.vhost):
                raise InvalidParameter(f'user "{user.name}" may not connect to vhost "{uri.vhost}"')

    def _check_arguments(self, definition: Definition) -> None:
        """Raise InvalidParameter with all wrong arguments of queues and consumers."""
        places = {
            "src-queue-args": definition.source.arguments,
            "dest-queue-args": definition.destination.arguments,
            "src-consumer-args": definition.consumer_arguments,
        }
        profile = self.server.broker.profile
        # RabbitMQ reads integers of JSON as long.
        places = {
            place: {name: fields.Long(item) if type(item) is int else item for name, item in arguments.items()}
            for place, arguments in places.items()
        }
        mistakes = [
            f"invalid arg '{name}' in {place}: {wrong}"
            for place, arguments in places.items()
            for name, wrong in wrong_values(arguments, profile, is_consumer=place == "src-consumer-args")
        ]
        if mistakes:
            raise InvalidParameter("\n".join(mistakes))

    def on_set(self, vhost: str, name: str, value: Any) -> None:
        """Start a shovel, which replaces the one of that name. Raise InvalidParameter."""
        from amqp_broker.shovel.shovel import Shovel
        from amqp_broker.shovel.shovel_definition import parse

        self.on_cleared(vhost, name)
        server = self.server
        shovel = Shovel(
            name, vhost, parse(name, value), self, server.broker.cluster_name, self._on_done, server.clock.real_now()
        )
        self._shovels[vhost, name] = shovel
        self._loop.call_soon(self._begin, shovel)

    def on_cleared(self, vhost: str, name: str) -> None:
        """Stop a shovel, if it runs."""
        shovel = self._shovels.pop((vhost, name), None)
        if shovel is not None:
            shovel.stop()
            self._set_timer(shovel)

    def restart(self, vhost: str, name: str) -> bool:
        """Reconnect a shovel; return False if it does not exist."""
        shovel = self._shovels.get((vhost, name))
        if shovel is not None:
            shovel.stop()
            self._loop.call_soon(self._begin, shovel)
        return shovel is not None

    def stop(self) -> None:
        """Stop all shovels."""
        for vhost, name in list(self._shovels):
            self.on_cleared(vhost, name)
        while self._static:
            shovel = self._static.pop()
            shovel.stop()
            self._set_timer(shovel)

    def _begin(self, shovel: Shovel) -> None:
        is_there = shovel in self._static or self._shovels.get((shovel.vhost, shovel.name)) is shovel
        if is_there and not self._is_paused:
            shovel.start(self.server.clock.real_now())
            self._set_timer(shovel)

    def _on_done(self, shovel: Shovel) -> None:
        """Delete the parameter of a shovel that has moved all its messages, which stops the shovel.

        A static shovel is not deleted: it may start again.
        """
        logger.info("shovel '%s' in vhost '%s' has moved its messages", shovel.name, shovel.vhost)
        self._loop.call_soon(self._renew if shovel.definition.static else self._delete, shovel)

    def _renew(self, shovel: Shovel) -> None:
        if shovel in self._static:
            shovel.renew(self.server.clock.real_now())
            self._set_timer(shovel)
            self.server.flush()

    def _delete(self, shovel: Shovel) -> None:
        vhost = self.server.broker.vhosts.get(shovel.vhost)
        if vhost is not None and self._shovels.get((shovel.vhost, shovel.name)) is shovel:
            vhost.parameters.clear(SHOVEL, shovel.name)
            self.server.flush()

    def _set_timer(self, shovel: Shovel) -> None:
        timer = self._timers.pop(shovel, None)
        if timer is not None:
            timer.cancel()
        if shovel.next_tick_ms is not None:
            self._timers[shovel] = self.server.broker.real_timers.at(
                shovel.next_tick_ms, lambda now: self._tick(shovel, now)
            )

    def _tick(self, shovel: Shovel, now: int) -> None:
        shovel.tick(now)
        self._set_timer(shovel)

    # Links

    def now(self) -> int:
        """Return the real time in ms since the epoch."""
        return self.server.clock.real_now()

    def open(self, uri: Uri, client: Client, shovel: Shovel) -> Link[Shovel]:
        """Connect one end of a shovel."""
        from amqp_broker.server.shovel_links import LocalLink, RemoteLink

        link: Link[Shovel]
        if uri.is_local:
            link = LocalLink(self, client, shovel, self.server, None if uri.is_loopback else self.user)
        else:
            link = RemoteLink(self, client, shovel)
        link.connect(uri)
        return link

    def lost(self, client: Client, shovel: Shovel, reason: str) -> None:
        """Handle the loss of a link: log the reason, and reconnect later."""
        from amqp_broker.shovel.shovel import RUNNING

        was_running = shovel.state == RUNNING
        before = shovel.reason
        shovel.on_lost(client, reason, self.server.clock.real_now())
        if shovel.reason and (was_running or shovel.reason != before):
            logger.warning("shovel '%s' in vhost '%s' is interrupted: %s", shovel.name, shovel.vhost, shovel.reason)
        self._set_timer(shovel)
        self.server.flush()
