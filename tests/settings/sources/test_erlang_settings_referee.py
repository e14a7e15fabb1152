"""Arguments of the virtual machine, as the shell and Erlang itself divide and read them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest

from amqp_broker.settings.sources import erlang_terms
from amqp_broker.settings.sources.erlang_settings import flags_in

APPLICATIONS = ("rabbit", "rabbitmq_management", "rabbitmq_prometheus")
# Forms of the variable in compose files, Dockerfiles, scripts and documentation of the world, and their neighbours.
FORMS = (
    '-rabbitmq_management load_definitions "/etc/rabbitmq/definitions.json"',
    "-rabbitmq_management load_definitions '/etc/rabbitmq/definitions.json'",
    '-rabbitmq_management load_definitions \\"/etc/rabbitmq/definitions.json\\"',
    "-rabbitmq_management load_definitions /etc/rabbitmq/definitions.json",
    "-rabbit log_levels [{connection,error},{default,error}] disk_free_limit 2147483648",
    "-rabbit log_levels [{connection,error}]",
    "-rabbit log [{console,[{level,debug}]}]",
    "-rabbit log [{level, debug}, {console, [{enabled, true}]} ]",
    "-rabbit consumer_timeout 7200000",
    "-rabbit consumer_timeout false",
    "-rabbit consumer_timeout undefined",
    "-rabbit heartbeat 600 -rabbitmq_prometheus return_per_object_metrics true",
    "-rabbit vm_memory_high_watermark 0.6",
    '-rabbit vm_memory_high_watermark {absolute,"2GB"}',
    '-rabbit tcp_listeners [5673,5674] -rabbitmq_management listener [{port,15673},{ip,<<"127.0.0.1">>}]',
    '-rabbit tcp_listeners [{"127.0.0.1",5672}]',
    '-rabbit default_user <<"anna">> default_pass <<"Se#cret">>',
    '-rabbit default_user "anna" default_pass "it is"',
    "-rabbit default_pass Se#cret",
    "-rabbit default_user '\"anna\"'",
    "-rabbit loopback_users []",
    '-rabbit loopback_users [<<"guest">>]',
    "-rabbit heartbeat 1 heartbeat 2 -rabbit heartbeat 3 channel_max 4",
    "-rabbit heartbeat 1 -rabbit",
    "-rabbit heartbeat",
    "-rabbit heartbeat -5",
    "-rabbit heartbeat 5.",
    "+S 1:1 -rabbit heartbeat 5 +sbwt none channel_max 7",
    "-rabbit +A 4 heartbeat 5",
    "+S2:2 -rabbit heartbeat 5",
    "-rabbit heartbeat 5 -- channel_max 7",
    "-rabbit heartbeat 5 -kernel inet_dist_listen_min 35197 -rabbit channel_max 7",
    "-rabbit   heartbeat\t5\n channel_max 7 ",
    "--rabbit heartbeat 5",
)
# Prints the settings that each application has from the arguments.
PROGRAM = """
lists:foreach(fun(A) ->
  application:load({application, A, [{vsn,"1"},{modules,[]},{registered,[]},{applications,[]}]}),
  io:format("~0p~n", [application:get_all_env(A)])
end, [rabbit, rabbitmq_management, rabbitmq_prometheus]), halt().
"""


def of_erlang(text: str) -> dict[str, dict[str, Any]]:
    """Return what Erlang has, started as RabbitMQ's script starts it."""
    done = subprocess.run(
        ["sh", "-fc", 'exec erl -noshell -noinput ${ARGUMENTS} -eval "$PROGRAM"'],
        env={**os.environ, "ARGUMENTS": text, "PROGRAM": PROGRAM},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")][: len(APPLICATIONS)]
    return {name: dict(erlang_terms.read(line)) for name, line in zip(APPLICATIONS, lines, strict=True)}


def of_this(text: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {name: {} for name in APPLICATIONS}
    invalid = set()
    for flag, values in reversed(list(flags_in(text))):
        name = flag.removeprefix("-")
        for key, value in zip(values[::2], values[1::2], strict=False) if name in found else ():
            try:
                found[name][key] = erlang_terms.read_whole(value)
            except erlang_terms.TermError:
                invalid.add(name)
    # Erlang then uses none of the application; here the others count, and the invalid one is reported.
    return {name: {} if name in invalid else pairs for name, pairs in found.items()}


@pytest.mark.verify
@pytest.mark.skipif(shutil.which("erl") is None, reason="Erlang is not installed")
@pytest.mark.parametrize("text", FORMS)
def test_arguments_are_those_that_erlang_finds(text: str) -> None:
    assert of_this(text) == of_erlang(text)
