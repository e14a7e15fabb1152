"""RabbitMQ's Grafana boards: each panel has data from this broker, or a reason why it has none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.samples import Sample

from compat.brokers import AmqpBroker
from compat.prometheus.boards import BOARDS, IDENTITY, JOINED, SHOWN, WITHOUT_DATA, samples, selected
from compat.prometheus.metrics import FORMS, fetch, use

PANELS = [(board, title) for board, panels in BOARDS.items() for title in panels]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sample]]:
    """Return the samples of /metrics after some traffic, and those of each queue."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile="4.3")
    with broker.running():
        connection = use(broker.url)
        yield samples({form: fetch(f"http://127.0.0.1:{broker.prometheus_port}{path}") for form, path in FORMS.items()})
        connection.close()


@pytest.mark.parametrize(("board", "title"), PANELS)
def test_a_panel_has_data_or_a_reason_why_not(scraped: list[Sample], board: str, title: str) -> None:
    found = {selector: selected(scraped, selector) for selector in BOARDS[board][title].split()}
    assert found
    if {(board, title), (board, "")} & WITHOUT_DATA.keys():
        assert not any(found.values())
    else:
        assert all(found.values())


def test_the_labels_that_panels_join_and_show_have_values(scraped: list[Sample]) -> None:
    for name, labels in {IDENTITY: JOINED, **SHOWN}.items():
        [sample] = selected(scraped, name)
        assert all(sample.labels[label] for label in labels)


def test_a_name_is_one_of_its_metric_alone(scraped: list[Sample]) -> None:
    """A query that joins on the instance fails for a second series with the same labels."""
    keys = [(sample.name, frozenset(sample.labels.items())) for sample in scraped]
    assert len(keys) == len(set(keys))


def test_every_reason_belongs_to_a_panel_or_a_board() -> None:
    assert WITHOUT_DATA.keys() <= {*PANELS, *((board, "") for board in BOARDS)}
