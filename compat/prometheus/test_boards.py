"""RabbitMQ's Grafana boards: each panel has data from this broker, or a reason why it has none."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from compat.brokers import AmqpBroker
from compat.prometheus.boards import BOARDS, IDENTITY, JOINED, SHOWN, WITHOUT_DATA
from compat.prometheus.metrics import FORMS, use

PANELS = [(board, title) for board, panels in BOARDS.items() for title in panels]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sample]]:
    """Return the samples of /metrics after some traffic, and those of each queue."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile="4.3")
    broker.declares_durable = True
    with broker.running():
        connection = use(broker)
        by_queue = [sample for sample in scraped(broker, FORMS["detailed"]) if "_detailed_" in sample.name]
        yield [*scraped(broker, FORMS["all together"]), *by_queue]
        connection.close()


def scraped(broker: AmqpBroker, path: str) -> list[Sample]:
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.prometheus_port}{path}", timeout=20) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    return [sample for family in families for sample in family.samples]


def selected(samples: list[Sample], selector: str) -> list[Sample]:
    """Return the samples of a selector: a name, with labels in braces."""
    name, _, rest = selector.partition("{")
    labels = set(re.findall(r"(\w+)=([^,}]+)", rest))
    return [one for one in samples if one.name == name and labels <= set(one.labels.items())]


@pytest.mark.parametrize(("board", "title"), PANELS)
def test_a_panel_has_data_or_a_reason_why_not(samples: list[Sample], board: str, title: str) -> None:
    found = {selector: selected(samples, selector) for selector in BOARDS[board][title].split()}
    assert found
    if {(board, title), (board, "")} & WITHOUT_DATA.keys():
        assert not any(found.values())
    else:
        assert all(found.values())


def test_the_labels_that_panels_join_and_show_have_values(samples: list[Sample]) -> None:
    for name, labels in {IDENTITY: JOINED, **SHOWN}.items():
        [sample] = selected(samples, name)
        assert all(sample.labels[label] for label in labels)


def test_a_name_is_one_of_its_metric_alone(samples: list[Sample]) -> None:
    """A query that joins on the instance fails for a second series with the same labels."""
    keys = [(sample.name, frozenset(sample.labels.items())) for sample in samples]
    assert len(keys) == len(set(keys))


def test_every_reason_belongs_to_a_panel_or_a_board() -> None:
    assert WITHOUT_DATA.keys() <= {*PANELS, *((board, "") for board in BOARDS)}
