"""The decorator `with_vhost`, for tests that are not pytest's."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from amqp_broker.testing.embedded_broker import EmbeddedBroker
from amqp_broker.testing.embedded_vhost import EmbeddedVHost
from amqp_broker.testing.shared_brokers import left_as_found

Result = TypeVar("Result")

# Started brokers by their settings. They stop when the program ends.
_brokers: dict[str, EmbeddedBroker] = {}
_starting = threading.Lock()


@overload
def with_vhost(test: Callable[..., Result], /) -> Callable[..., Result]: ...
@overload
def with_vhost(**settings: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]: ...
def with_vhost(test: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
    """Give a test a new vhost as its argument `vhost`; it is deleted afterwards.

    A test is a function, a method or a coroutine function. `settings` are those of EmbeddedBroker. All tests with the
    same settings share a broker, which starts with the first of them. An error of the test has the events of the vhost
    as a note. Connections that the test leaves open, and fault rules that hit nothing, are warned of. The first call of
    the test raises SettingsError for wrong settings.
    """
    if test is None:
        return functools.partial(with_vhost, **settings)
    if inspect.iscoroutinefunction(test):

        @functools.wraps(test)
        async def in_vhost(*arguments: Any, **options: Any) -> Any:
            with _lent(settings) as vhost:
                return await test(*arguments, **options, vhost=vhost)

    else:

        @functools.wraps(test)
        def in_vhost(*arguments: Any, **options: Any) -> Any:
            with _lent(settings) as vhost:
                return test(*arguments, **options, vhost=vhost)

    # A test runner that looks at the arguments does not see this one.
    signature = inspect.signature(test)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "vhost"]
    in_vhost.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return in_vhost


@contextmanager
def _lent(settings: dict[str, Any]) -> Iterator[EmbeddedVHost]:
    """Lend a vhost of the broker with these settings, whose fault rules are left as they were."""
    broker = _broker(settings)
    with left_as_found(broker), broker.vhost() as vhost:
        yield vhost


def _broker(settings: dict[str, Any]) -> EmbeddedBroker:
    """Return the running broker with these settings. Raise SettingsError."""
    key = repr(sorted(settings.items()))
    with _starting:
        broker = _brokers.get(key)
        if broker is None or not broker.is_running:
            broker = _brokers[key] = EmbeddedBroker(**settings).start()
        return broker
