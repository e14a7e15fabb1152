"""Write the table of metrics in docs/metrics.md from their declarations: `python -m docs.metrics_table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from amqp_broker.management.metrics.declarations import Family, Metric
from amqp_broker.management.metrics.memory_metrics import MEMORY_FAMILIES
from amqp_broker.management.metrics.node_metrics import (
    GLOBAL_FAMILIES,
    IDENTITY_FAMILIES,
    NODE_FAMILIES,
    PROCESS_FAMILIES,
)
from amqp_broker.management.metrics.object_metrics import CLUSTER_FAMILIES, OBJECT_FAMILIES
from amqp_broker.management.metrics.queue_metrics import UNSUMMED_FAMILIES
from amqp_broker.settings.profiles import PROFILES

PAGE: Final = Path(__file__).with_name("metrics.md")
BEGIN: Final = "<!-- metrics: python -m docs.metrics_table -->\n"
END: Final = "<!-- end of metrics -->\n"

MEMORY_BREAKDOWN: Final = "/metrics/memory-breakdown"

# Families and the names by which /metrics/detailed offers them.
FAMILIES: Final = (
    *((family, family.name) for family in (*NODE_FAMILIES, *OBJECT_FAMILIES, *UNSUMMED_FAMILIES, *CLUSTER_FAMILIES)),
    *((family, "") for family in (*GLOBAL_FAMILIES, *PROCESS_FAMILIES, *IDENTITY_FAMILIES)),
    *((family, MEMORY_BREAKDOWN) for family in MEMORY_FAMILIES),
)


def table() -> str:
    """Return the table: each metric with its labels, type and meaning, under its family."""
    return "| metric | labels | type | meaning |\n|---|---|---|---|\n" + "".join(_rows())


def _rows() -> Iterator[str]:
    for family, name in FAMILIES:
        if name == MEMORY_BREAKDOWN:
            yield f"| **only in `{name}`** | | | |\n"
        elif name:
            yield f"| **`family={name}`** | | | |\n"
        elif family is GLOBAL_FAMILIES[0]:
            yield "| **not in `/metrics/detailed`** | | | |\n"
        newest = {metric.name: metric for metric in family.metrics}
        for metric in newest.values():
            labels = ", ".join(f"`{label}`" for label in family.labels)
            name = f"{'' if family in PROCESS_FAMILIES else _prefix(family)}{metric.name}"
            yield f"| `{name}` | {labels} | {metric.type} | {metric.help}{_releases(metric, family)} |\n"


def _releases(metric: Metric, family: Family) -> str:
    """Return the profiles that have a metric, if not all have it."""
    found = [one for one in family.metrics if one.name == metric.name]
    known = [
        name for name, profile in PROFILES.items() if any(one.since <= profile.release < one.until for one in found)
    ]
    return "" if len(known) == len(PROFILES) else f" (only with `--compat {'|'.join(known)}`)"


def _prefix(family: Family) -> str:
    return "rabbitmq_cluster_" if family in CLUSTER_FAMILIES else "rabbitmq_"


def page(text: str) -> str:
    """Return the text of the page with the current table."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
