"""Erlang expressions at a RabbitMQ.

`rabbitmqctl eval` takes seconds for each, so it starts a server that evaluates all of them.
"""

from __future__ import annotations

import socket

from compat.brokers import free_port
from compat.oracles.rabbitmq import RabbitMQ

SERVER = """
spawn(fun() ->
    {{ok, Listener}} = gen_tcp:listen({port}, [{{ip, {{127, 0, 0, 1}}}}, {{packet, line}}, {{active, false}}]),
    Serve = fun Serve() ->
        {{ok, Client}} = gen_tcp:accept(Listener),
        {{ok, Line}} = gen_tcp:recv(Client, 0),
        {{ok, Tokens, _}} = erl_scan:string(Line),
        {{ok, Expressions}} = erl_parse:parse_exprs(Tokens),
        {{value, Value, _}} = erl_eval:exprs(Expressions, []),
        ok = gen_tcp:send(Client, io_lib:format("~0p~n", [Value])),
        ok = gen_tcp:close(Client),
        Serve()
    end,
    Serve()
end).
"""
_PORTS: dict[int, int] = {}


def evaluate(broker: RabbitMQ, expression: str) -> str:
    """Return the value of an expression as text."""
    if broker.pid not in _PORTS:
        port = free_port()
        done = broker.run("rabbitmqctl", "eval", SERVER.format(port=port))
        assert done.returncode == 0, done.stderr
        _PORTS[broker.pid] = port
    with socket.create_connection(("127.0.0.1", _PORTS[broker.pid]), timeout=60) as client:
        client.sendall(f"{expression}\n".encode())
        return client.makefile().readline().strip()
