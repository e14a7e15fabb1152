"""Outcomes that the programs report, stored in `results.json`, from which the table is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

AMQP_BROKER, RABBITMQ = "amqp-broker", "RabbitMQ"


class Kind(StrEnum):
    OK = "ok"
    FAILED = "failed"
    # The client does not support it.
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True)
class Outcome:
    kind: Kind
    # The reason of a failure or of missing support.
    reason: str = ""


@dataclass
class ClientResults:
    """All results of one client, by broker and scenario."""

    language: str
    version: str
    # The reason if it could not be played; then there are no outcomes.
    absent: str = ""
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)


def parse_result(line: str) -> tuple[str, Outcome] | None:
    """The scenario and outcome that a line tells, or None for any other line.

    >>> parse_result("RESULT ttl failed got 3 messages")
    ('ttl', Outcome(kind=<Kind.FAILED: 'failed'>, reason='got 3 messages'))
    """
    words = line.strip().split(" ", 3)
    if len(words) < 3 or words[0] != "RESULT" or words[2] not in list(Kind):
        return None
    kind = Kind(words[2])
    reason = words[3].strip() if len(words) > 3 else ""
    return words[1], Outcome(kind, "" if kind is Kind.OK else reason or "no reason given")


def differences(results: dict[str, ClientResults], scenarios: list[str]) -> list[str]:
    """Return a line for each client and scenario whose outcome differs between amqp-broker and RabbitMQ.

    A scenario that fails at both brokers is a matter of the client or its program; the table shows it. One that the
    client does not support at RabbitMQ, which is an old one, has nothing to compare with.
    """
    lines = []
    for name, client in results.items():
        amqp_broker, rabbitmq = client.outcomes.get(AMQP_BROKER, {}), client.outcomes.get(RABBITMQ, {})
        for scenario in scenarios:
            mine, its = amqp_broker.get(scenario), rabbitmq.get(scenario)
            is_asked = its is not None and its.kind is not Kind.UNSUPPORTED
            if mine is None or (its and its.kind is mine.kind) or (not is_asked and mine.kind is not Kind.FAILED):
                continue
            oracle = f"RabbitMQ: {told(its)}" if its else "RabbitMQ was not asked"
            lines.append(f"{name}, {scenario}: {told(mine)}; {oracle}")
    return lines


def told(outcome: Outcome) -> str:
    return f"{outcome.kind}, {outcome.reason}" if outcome.reason else str(outcome.kind)


def load(path: Path) -> dict[str, ClientResults]:
    """Load results stored by `save`; none if the file does not exist."""
    if not path.exists():
        return {}
    return {
        name: ClientResults(
            kept["language"],
            kept["version"],
            kept["absent"],
            {
                broker: {scenario: Outcome(Kind(kind), reason) for scenario, (kind, reason) in outcomes.items()}
                for broker, outcomes in kept["outcomes"].items()
            },
        )
        for name, kept in json.loads(path.read_text("utf-8")).items()
    }


def save(path: Path, results: dict[str, ClientResults]) -> None:
    kept = {
        name: {
            "language": client.language,
            "version": client.version,
            "absent": client.absent,
            "outcomes": {
                broker: {scenario: [outcome.kind, outcome.reason] for scenario, outcome in outcomes.items()}
                for broker, outcomes in client.outcomes.items()
            },
        }
        for name, client in sorted(results.items())
    }
    path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
