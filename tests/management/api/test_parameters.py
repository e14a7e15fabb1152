from __future__ import annotations

import pytest

from tests.management.asking import Desk

PATH = "/api/parameters/federation-upstream/%2F/up"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_parameter_is_set_listed_and_cleared(desk: Desk) -> None:
    assert desk.ask("PUT", PATH, {"value": {"uri": "amqp://a"}})[0] == 201
    assert desk.ask("PUT", PATH, {"value": {"uri": "amqp://b"}})[0] == 204
    described = {"value": {"uri": "amqp://b"}, "vhost": "/", "component": "federation-upstream", "name": "up"}
    assert desk.get(PATH) == (200, described)
    for path in ("", "/federation-upstream", "/federation-upstream/%2F"):
        assert desk.get(f"/api/parameters{path}") == (200, [described])
    assert desk.ask("DELETE", PATH)[0] == 204
    assert desk.ask("DELETE", PATH) == desk.get(PATH) == (404, "Not Found")


def test_invalid_parameters_are_refused_in_rabbitmqs_words(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/parameters/x/%2F/up", {"value": 1}) == (
        400,
        "Validation failed\n\ncomponent x not found\n",
    )
    assert desk.ask("PUT", "/api/parameters/policy/%2F/p", {"value": {}}) == (
        400,
        "policies may not be set using this method",
    )
    assert desk.ask("PUT", PATH, {}) == (400, "[{key_missing,value}]")
    assert desk.ask("PUT", "/api/parameters/federation-upstream/none/up", {"value": {}}) == (404, "vhost_not_found")


@pytest.mark.parametrize(("compat", "term"), [("4.0", '{&lt;&lt;"x'), ("4.3", '{<<"x')])
def test_a_reason_has_escapes_of_html_before_4_3(compat: str, term: str) -> None:
    status, reason = Desk(compat=compat).ask("PUT", PATH, {"value": {"uri": "amqp://a", "x": 1}})
    assert (status, term in reason) == (400, True)


def test_policies_are_listed_as_parameters_only_by_component(desk: Desk) -> None:
    desk.ask("PUT", "/api/policies/%2F/p", {"pattern": "", "definition": {"max-length": 1}})
    assert desk.get("/api/parameters") == (200, [])
    assert [one["name"] for one in desk.get("/api/parameters/policy")[1]] == ["p"]


def test_global_parameters_hold_any_value(desk: Desk) -> None:
    path, value = "/api/global-parameters/mine", {"a": [1, None, "x", 1.5, True]}
    assert desk.ask("PUT", path, {"value": value})[0] == 201
    assert desk.ask("PUT", path, {"value": value})[0] == 204
    assert desk.get(path) == (200, {"name": "mine", "value": value})
    assert {"name": "mine", "value": value} in desk.get("/api/global-parameters")[1]
    assert desk.ask("DELETE", path)[0] == 204
    assert desk.ask("DELETE", path) == desk.get(path) == (404, "Not Found")


def test_lists_of_federation_links_and_shovels_are_empty(desk: Desk) -> None:
    for name in ("federation-links", "shovels"):
        assert desk.get(f"/api/{name}") == desk.get(f"/api/{name}/%2F") == (200, [])
        assert desk.get(f"/api/{name}/none") == (404, "Not Found")


def test_a_value_nested_deeper_than_a_hundred_levels_is_refused(desk: Desk) -> None:
    def set_nested(depth: int) -> tuple[int, object]:
        value = b'{"a":' * depth + b"1" + b"}" * depth
        return desk.ask("PUT", "/api/global-parameters/deep", b'{"value":%s}' % value)

    assert set_nested(100)[0] == 201
    for depth in (101, 10_000):
        status, reason = set_nested(depth)
        assert status == 400
        assert "must not be nested deeper than 100 levels" in str(reason)


@pytest.mark.parametrize("name", ["cluster_tags", "internal_cluster_id"])
def test_a_global_parameter_of_the_node_is_gone_once_it_was_deleted(name: str) -> None:
    """Seen in RabbitMQ 4.0.5 and 4.3.6."""
    desk = Desk()
    path = f"/api/global-parameters/{name}"
    assert desk.get(path)[0] == 200
    assert desk.ask("DELETE", path)[0] == 204
    assert name not in [parameter["name"] for parameter in desk.get("/api/global-parameters")[1]]
    assert (desk.get(path)[0], desk.ask("DELETE", path)[0]) == (404, 404)
    assert desk.ask("PUT", path, {"value": {"a": "b"}})[0] == 201
    assert desk.get(path)[1]["value"] == {"a": "b"}


def test_cluster_tags_are_shown_in_the_overview() -> None:
    desk = Desk()
    assert desk.ask("PUT", "/api/global-parameters/cluster_tags", {"value": {"region": "eu"}})[0] == 204
    assert desk.get("/api/overview")[1]["cluster_tags"] == {"region": "eu"}


def test_an_empty_object_of_a_global_parameter_becomes_an_array(desk: Desk) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6; objects within a value stay."""
    for value, shown in (({}, []), ({"a": {}}, {"a": {}})):
        desk.ask("PUT", "/api/global-parameters/g", {"value": value})
        assert desk.get("/api/global-parameters/g") == (200, {"name": "g", "value": shown})
