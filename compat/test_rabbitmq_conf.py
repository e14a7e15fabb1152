"""Lines of rabbitmq.conf mean to us what they mean to cuttlefish, which reads it for RabbitMQ."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from amqp_broker.rabbitmq_conf import parse, parts
from compat.brokers import RABBITMQ_SERVER

CUTTLEFISH = sorted(RABBITMQ_SERVER.parents[1].glob("lib/*/plugins/cuttlefish-*/ebin"))

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


@pytest.mark.skipif(not CUTTLEFISH or shutil.which("erl") is None, reason="RabbitMQ is not installed here")
def test_we_read_the_same(tmp_path: Path) -> None:
    files = [tmp_path / f"{index:02}.conf" for index in range(len(LINES))]
    for file, line in zip(files, LINES, strict=True):
        file.write_text(line + "\n", newline="")
    command = ["erl", "-noshell", "-pa", str(CUTTLEFISH[-1]), "-eval", PROGRAM, "-extra", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    theirs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[[", "[]", "null"))]
    ours = []
    for line in LINES:
        entries, wrong = parse(line, "f")
        ours.append(None if wrong else [[parts(entry.key), entry.value] for entry in entries])
    assert dict(zip(LINES, ours, strict=True)) == dict(zip(LINES, theirs, strict=True))
