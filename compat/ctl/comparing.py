"""The comparison of what RabbitMQ's tool and its counterpart print."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence

from compat.ctl.differences import Difference

Lines = list[str]

# Lists have an order only if the user requests one.
_OBJECT = re.compile(r"^,?(\{\".*\})$")
_SET = re.compile(r"[a-z]+/rabbitmqctl .*\blist_|[a-z]+/rabbitmqadmin (?!-S).*\blist ")


def problems(question: str, recorded: list[Lines], amqp_broker: Lines, differences: Sequence[Difference]) -> Lines:
    """Return the unlisted differences of a counterpart's output from the most similar recorded one."""
    found = [list(_problems(question, lines, amqp_broker, differences)) for lines in recorded]
    return min(found, key=len)


def _problems(question: str, rabbitmq: Lines, amqp_broker: Lines, differences: Sequence[Difference]) -> Iterator[str]:
    expected = "\n".join(rabbitmq)
    for difference in differences:
        for change in difference.changes:
            if change.question != question:
                continue
            if change.rabbitmq not in expected:
                yield f"{difference.title!r} is listed, but RabbitMQ does not say {change.rabbitmq!r}"
            expected = expected.replace(change.rabbitmq, change.answered)
    sides = _comparable(question, expected.split("\n")), _comparable(question, amqp_broker)
    if sides[0] != sides[1]:
        yield "\n".join(difflib.unified_diff(*sides, "RabbitMQ, listed differences aside", "amqp-broker", lineterm=""))


def fields(question: str, rabbitmq: Lines, amqp_broker: Lines) -> set[str]:
    """Return the parts in which two outputs differ: output, errors, exit code."""
    there, here = (_parts(_comparable(question, lines)) for lines in (rabbitmq, amqp_broker))
    return {name for name in there if there[name] != here[name]}


def _parts(lines: Lines) -> dict[str, Lines]:
    parts: dict[str, Lines] = {"output": [], "errors": [], "exit code": []}
    for line in lines:
        name = "errors" if line.startswith("! ") else "exit code" if line.startswith("exit code ") else "output"
        parts[name].append(line)
    return parts


def _comparable(question: str, lines: Lines) -> Lines:
    # RabbitMQ 4.3 writes the names of an object in an order that depends on the run.
    lines = [_OBJECT.sub(_sorted, line) for line in lines]
    if not _SET.match(question):
        return lines
    # Rows of JSON start with a comma, except the first one.
    return sorted(line.removeprefix(",") for line in lines)


def _sorted(found: re.Match[str]) -> str:
    """Return an object of JSON with its names sorted."""
    return json.dumps(json.loads(found[1]), sort_keys=True, ensure_ascii=False)
