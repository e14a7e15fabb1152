"""The paths of the HTTP API with their methods, as the broker itself lists them."""

from __future__ import annotations

import re

from amqp_broker.management.api_sections import SECTIONS
from compat.oracle.suite import Answer
from compat.oracles.rabbitmq import RabbitMQ

# RabbitMQ's table of paths, a line for each. A module without a list of methods has those of its web server. Some
# modules expect the options of the path in their state.
_LIST = """
Of = fun(Module, State) -> element(1, Module:allowed_methods(#{method => <<"GET">>}, State)) end,
Methods = fun(Module, Options) ->
  try Of(Module, {case Options of [One | _] -> One; [] -> none end, none})
  catch _:_ -> try Of(Module, none) catch _:_ -> [<<"GET">>] end end end,
[io:format("~s ~s~n", [Path, lists:join(" ", Methods(Module, Options))])
 || {Path, Module, Options} <- rabbit_mgmt_dispatcher:dispatcher()], ok."""
# Every path has them.
_ALWAYS = {"HEAD", "OPTIONS"}


def of_rabbitmq(broker: RabbitMQ) -> Answer:
    """Return the methods of each path of RabbitMQ's API. Raise RuntimeError if it does not list them."""
    done = broker.run("rabbitmqctl", "eval", _LIST)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("/")]
    if done.returncode or not lines:
        raise RuntimeError(done.stdout + done.stderr)
    return _by_path([(f"/api{path}", set(methods)) for path, *methods in lines])


def of_amqp_broker() -> Answer:
    """Return the methods of each path that this broker's API shares with RabbitMQ's."""
    endpoints = [endpoint for section in SECTIONS.values() for endpoint in section]
    return _by_path([(one.path, {one.method}) for one in endpoints if one.path.startswith("/api")])


def _by_path(found: list[tuple[str, set[str]]]) -> Answer:
    """Return the methods by path, with a name for all parameters."""
    routes: dict[str, set[str]] = {}
    for path, methods in found:
        routes.setdefault(re.sub(r":\w+|\{\w+\}", "*", path).rstrip("/"), set()).update(methods - _ALWAYS)
    return {path: sorted(methods) for path, methods in sorted(routes.items())}
