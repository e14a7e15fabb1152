"""Lines of rabbitmq.conf as a suite of the oracle: cuttlefish reads them for RabbitMQ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from amqp_broker.settings.sources.rabbitmq_conf import parse, parts
from compat.brokers import AmqpBroker
from compat.oracle.comparing import fields
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.rabbitmq import RabbitMQ

LINES = [
    "a = 1",
    "a=1",
    "  a\t=\t1  ",
    "a = 1 # comment",
    "a = b#c",
    "a = b=c",
    "a = with  spaces ",
    'a = "quoted"',
    "a = 'half",
    "a = C:\\x",
    "a.b\\.c.D-1_x = 2",
    "# a = 1",
    "   ",
    "a =",
    "a",
    "a b = 1",
    "a:b = 1",
    "!a = 1",
    "a = 1\r\nb = 2",
    "a = 1\nnonsense\nb = 2",
]
PROGRAM = """
Told = fun(File) ->
    case cuttlefish_conf:file(File) of
        {errorlist, _} -> "null";
        Pairs ->
            Quoted = fun(Text) -> io_lib:format("~p", [Text]) end,
            Pair = fun({Key, Value}) ->
                ["[[", lists:join(",", [Quoted(Part) || Part <- Key]), "],", Quoted(Value), "]"]
            end,
            ["[", lists:join(",", [Pair(Each) || Each <- Pairs]), "]"]
    end
end,
[io:format("~s~n", [Told(File)]) || File <- init:get_plain_arguments()],
halt().
"""


@contextmanager
def _answers(broker: RabbitMQ) -> Iterator[Answers]:
    """Return keys, in parts, and values of each line; null for a refused line."""
    files = [broker.folder / f"{index:02}.conf" for index in range(len(LINES))]
    for file, line in zip(files, LINES, strict=True):
        file.write_text(line + "\n", "utf-8", newline="")
    cuttlefish = next(broker.library.glob("plugins/cuttlefish-*/ebin")).relative_to(broker.root)
    code = ("-pa", f"/{cuttlefish}", "-eval", PROGRAM)
    done = broker.run("/usr/bin/erl", "-noshell", *code, "-extra", *map(str, files))
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[[", "[]", "null"))]
    yield dict(zip(LINES, told, strict=True))


@contextmanager
def _own_answers(broker: AmqpBroker) -> Iterator[Answers]:
    yield {line: read(line) for line in LINES}


def read(line: str) -> Answer:
    """Return keys, in parts, and values as amqp-broker reads them; None for a refused line."""
    entries, wrong = parse(line, "f")
    return None if wrong else [[list(parts(entry.key)), entry.value] for entry in entries]


RABBITMQ_CONF = Suite("rabbitmq_conf", _answers, _own_answers, fields)
