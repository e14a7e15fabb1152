from __future__ import annotations

import pytest

from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.paths import SEGMENTS_MAX, BrokenPath, Paths, query_of, segments_of


def endpoint(path: str) -> Endpoint:
    return Endpoint("GET", path, "", lambda request: None, "", None, None, ())


PATHS = Paths(
    [
        endpoint("/api/queues"),
        endpoint("/api/queues/{vhost}/{name}"),
        endpoint("/api/exchanges/{vhost}/{name}"),
        endpoint("/api/exchanges/{vhost}/{name}/publish"),
        endpoint("/api/connections/{name}/channels"),
        endpoint("/api/connections/username/{user}"),
        endpoint("/api/connections/{name}"),
    ]
)


@pytest.mark.parametrize(
    ("path", "found", "parts"),
    [
        ("/api/queues", "/api/queues", {}),
        ("/api/queues/", "/api/queues", {}),
        ("/api/./queues", "/api/queues", {}),
        ("/x/../api/queues", "/api/queues", {}),
        ("/../api/queues", "/api/queues", {}),
        ("/api/queues/%2F/a", "/api/queues/{vhost}/{name}", {"vhost": "/", "name": "a"}),
        ("/api/queues/%2f/a%2Fb/", "/api/queues/{vhost}/{name}", {"vhost": "/", "name": "a/b"}),
        ("/api/queues/%2F/a%252F", "/api/queues/{vhost}/{name}", {"vhost": "/", "name": "a%2F"}),
        ("/api/queues/v/%FF", "/api/queues/{vhost}/{name}", {"vhost": "v", "name": "\udcff"}),
        ("/api/queues/v/%00%0A", "/api/queues/{vhost}/{name}", {"vhost": "v", "name": "\0\n"}),
        ("/api/queues/v/a+b", "/api/queues/{vhost}/{name}", {"vhost": "v", "name": "a+b"}),
        ("/api/exchanges/%2F//", "/api/exchanges/{vhost}/{name}", {"vhost": "/", "name": ""}),
        ("/api/exchanges/%2F//publish", "/api/exchanges/{vhost}/{name}/publish", {"vhost": "/", "name": ""}),
        ("/api/%71ueues", "/api/queues", {}),
        ("/api/connections/username", "/api/connections/{name}", {"name": "username"}),
        ("/api/connections/username/channels", "/api/connections/username/{user}", {"user": "channels"}),
        ("/api/connections/c/channels", "/api/connections/{name}/channels", {"name": "c"}),
    ],
)
def test_a_path_leads_to_its_endpoints_and_names(path: str, found: str, parts: dict[str, str]) -> None:
    answer = PATHS.find(path)
    assert answer is not None
    assert (answer[0]["GET"].path, answer[1]) == (found, parts)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/api",
        "/api//queues",
        "/api/queues/v",
        "/api/queues//q",
        "/api/queues/v/q/x",
        "/api/queues/%2F/%2e%2e/..",
        "/a" * (SEGMENTS_MAX + 1),
    ],
)
def test_an_unknown_path_is_not_found(path: str) -> None:
    assert PATHS.find(path) is None


@pytest.mark.parametrize("path", ["/%", "/%2", "/%zz", "/a%2x"])
def test_a_percent_sign_without_two_digits_is_refused(path: str) -> None:
    with pytest.raises(BrokenPath):
        segments_of(path)


def test_the_first_of_repeated_query_parameters_applies() -> None:
    assert query_of("a=1&a=2&b=&c&d=%FF+x") == {"a": "1", "b": "", "c": "", "d": "\udcff x"}
