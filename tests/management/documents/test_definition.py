from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.management.documents.definition import DefinitionsError, Entry, with_remedy


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "queue 'q' has no name"),
        ({"name": 5}, "name of queue 'q' should be a string, actually was 5"),
        ({"name": "é" * 128}, "name of queue 'q' is longer than 255 octets"),
    ],
)
def test_a_wrong_name_is_refused_with_the_title_of_the_object(values: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionsError) as caught:
        Entry("queue 'q'", values).name()
    assert str(caught.value) == text


@pytest.mark.parametrize("tags", [["a", "b"], "a, b", "a,,b"])
def test_tags_are_an_array_or_a_text(tags: Any) -> None:
    assert Entry("user 'u'", {"tags": tags}).tags() == ["a", "b"]


def test_values_that_are_no_object_are_refused() -> None:
    with pytest.raises(DefinitionsError, match=r"^queue 3 should be an object, actually was 5$"):
        Entry("queue 3", 5)


def test_a_refusal_of_keys_that_rabbitmq_4_has_removed_has_a_remedy() -> None:
    text = '[{<<"ha-mode">>,<<"all">>}] are not recognised policy settings'
    assert with_remedy(text).startswith(f"{text}; RabbitMQ 4 has removed mirrored queues: leave out the keys ha-*")
    other = text.replace("ha-mode", "foo")
    assert with_remedy(other) == other
