from __future__ import annotations

from amqp_broker.management import metrics
from amqp_broker.management.resources import RESOURCES
from docs.http_api_page import METRIC_PATHS, PAGE, SECTIONS, page


def test_the_page_of_the_http_api_is_what_its_resources_give() -> None:
    assert PAGE.read_text() == page(), "python -m docs.http_api_page writes it anew"


def test_every_resource_is_said_what_it_is_once() -> None:
    said = [path for paths in SECTIONS.values() for path in paths]
    assert sorted(said) == sorted(resource.path for resource in RESOURCES)
    assert set(METRIC_PATHS) == {resource.path for resource in metrics.resources(is_per_object=False)}


def test_a_row_tells_methods_tag_and_body() -> None:
    row = next(line for line in page().splitlines() if line.startswith("| `/api/policies/{vhost}/{name}` "))
    assert row == (
        "| `/api/policies/{vhost}/{name}` | GET PUT DELETE | policymaker | one "
        "| **`pattern`**, **`definition`**, `priority`, `apply-to` |"
    )
