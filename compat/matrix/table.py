"""The table of compat/README.md: a row per client, a column per scenario, and notes on the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from compat.matrix.results import AMQP_BROKER, RABBITMQ, ClientResults, Kind, Outcome, told

BEGIN = "<!-- The {}: written by `make compat`. -->"
END = "<!-- End of the {}. -->"

SIGNS = {Kind.OK: "✓", Kind.FAILED: "✗", Kind.UNSUPPORTED: "n/a"}
NOT_PLAYED = "?"


def write(page: Path, results: Mapping[str, ClientResults], scenarios: Mapping[str, str]) -> None:
    """Write the matrix and the scenarios between their markers in the page. Raise ValueError for a missing marker."""
    text = put(page.read_text("utf-8"), "matrix", render(results, scenarios))
    described = "".join(f"- **{name.replace('_', ' ')}**: {sentence}\n" for name, sentence in scenarios.items())
    page.write_text(put(text, "scenarios", described), "utf-8")


def put(text: str, what: str, content: str) -> str:
    """Return the text with this content between two markers."""
    before, begin, rest = text.partition(BEGIN.format(what))
    _, end, after = rest.partition(END.format(what))
    if not begin or not end:
        raise ValueError(f"there is no place for the {what}, between {BEGIN.format(what)} and {END.format(what)}")
    return f"{before}{begin}\n\n{content}\n{end}{after}"


def render(results: Mapping[str, ClientResults], scenarios: Mapping[str, str]) -> str:
    """Return the table as Markdown, with a legend, the reasons, and the clients that were not played."""
    ordered = sorted(results.items(), key=lambda item: (item[1].language.lower(), item[0]))
    head = ["client", *(f"{name.replace('_', ' ')}" for name in scenarios)]
    lines = [_row(head), _row(["---", *[":-:"] * len(scenarios)])]
    for name, client in ordered:
        if client.absent:
            cells = ["", *[""] * (len(scenarios) - 1)]
            lines.append(_row([f"{client.language}: {name} {client.version}, not played here", *cells]))
        else:
            lines.append(_row([f"{client.language}: {name} {client.version}", *(_cell(client, s) for s in scenarios)]))
    lines += ["", *_notes(dict(ordered), scenarios)]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(client: ClientResults, scenario: str) -> str:
    """Return one sign if both brokers agree, else amqp-broker's and RabbitMQ's."""
    signs = [_sign(client.outcomes.get(broker, {}).get(scenario)) for broker in (AMQP_BROKER, RABBITMQ)]
    return signs[0] if signs[0] == signs[1] else "/".join(signs)


def _sign(outcome: Outcome | None) -> str:
    return SIGNS[outcome.kind] if outcome else NOT_PLAYED


def _notes(results: Mapping[str, ClientResults], scenarios: Mapping[str, str]) -> Iterator[str]:
    played = [client for client in results.values() if not client.absent]
    cells = [cell for client in played for cell in (_cell(client, scenario) for scenario in scenarios)]
    yield (
        f"✓: passes ({cells.count('✓')} cells); n/a: the client does not support it ({cells.count('n/a')}); ✗: fails; "
        "?: not played. Where the two brokers differ, amqp-broker's sign stands before RabbitMQ's."
    )
    absent = [f"- {name}: {client.absent}" for name, client in results.items() if client.absent]
    if absent:
        yield from ("", "Not played here:", "", *absent)
    failed = list(_reasons(results, scenarios, Kind.FAILED))
    if failed:
        yield from ("", "Failures:", "", *failed)
    unsupported = list(_reasons(results, scenarios, Kind.UNSUPPORTED))
    if unsupported:
        yield from ("", "Scenarios that clients do not support:", "", *unsupported)


def _reasons(results: Mapping[str, ClientResults], scenarios: Mapping[str, str], kind: Kind) -> Iterator[str]:
    """Return a line for each cell in which a broker has this outcome."""
    for name, client in results.items():
        for scenario in scenarios:
            both = {broker: client.outcomes.get(broker, {}).get(scenario) for broker in (AMQP_BROKER, RABBITMQ)}
            of_kind = {broker: outcome for broker, outcome in both.items() if outcome and outcome.kind is kind}
            if not of_kind:
                continue
            if len({outcome.reason for outcome in of_kind.values()}) == 1 and len(of_kind) == len(both):
                yield f"- {name}, {scenario}: {next(iter(of_kind.values())).reason}"
            else:
                sides = "; ".join(f"{broker}: {told(outcome)}" for broker, outcome in of_kind.items())
                yield f"- {name}, {scenario}: {sides}"
