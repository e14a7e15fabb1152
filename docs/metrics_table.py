"""Write the table of metrics in docs/metrics.md from their declarations: `python -m docs.metrics_table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from amqp_broker.management.metrics.declarations import Family
from amqp_broker.management.metrics.node_metrics import GLOBAL_FAMILIES, IDENTITY_FAMILIES, NODE_FAMILIES
from amqp_broker.management.metrics.object_metrics import CLUSTER_FAMILIES, OBJECT_FAMILIES

PAGE: Final = Path(__file__).with_name("metrics.md")
BEGIN: Final = "<!-- metrics: python -m docs.metrics_table -->\n"
END: Final = "<!-- end of metrics -->\n"

# Families and the names by which /metrics/detailed offers them.
FAMILIES: Final = (
    *((family, family.name) for family in (*NODE_FAMILIES, *OBJECT_FAMILIES, *CLUSTER_FAMILIES)),
    *((family, "") for family in (*GLOBAL_FAMILIES, *IDENTITY_FAMILIES)),
)


def table() -> str:
    """Return the table: each metric with its labels, type and meaning, under its family."""
    return "| metric | labels | type | meaning |\n|---|---|---|---|\n" + "".join(_rows())


def _rows() -> Iterator[str]:
    for family, name in FAMILIES:
        if name:
            yield f"| **`family={name}`** | | | |\n"
        elif family is GLOBAL_FAMILIES[0]:
            yield "| **not in `/metrics/detailed`** | | | |\n"
        for metric in family.metrics:
            labels = ", ".join(f"`{label}`" for label in family.labels)
            yield f"| `{_prefix(family)}{metric.name}` | {labels} | {metric.type} | {metric.help} |\n"


def _prefix(family: Family) -> str:
    return "rabbitmq_cluster_" if family in CLUSTER_FAMILIES else "rabbitmq_"


def page(text: str) -> str:
    """Return the text of the page with the current table."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
