"""The media types of RabbitMQ's API: those that a client must accept, and those that a body may have.

Answers are JSON, but a client of a path without answers must accept text/html, its web server's default. Some paths
take JSON alone; the others take any type. A header that is no list of media types, or no media type, is refused.
Source: content_types_provided and content_types_accepted of each rabbit_mgmt_wm_ module; cowboy_rest.erl. The same in
RabbitMQ 3.10.8, 4.0.5 and 4.3.6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.endpoint import Endpoint

API: Final = "/api/"
JSON: Final = "application/json"
HTML: Final = "text/html"
TEXT: Final = "text/plain"
# The type of the answers of paths that do not have JSON.
ANSWERS: Final = {
    "/api/config/effective": TEXT,
    "/api/rebalance/queues": TEXT,
    "/api/feature-flags/{name}/enable": HTML,
    "/api/queues/quorum/replicas/on/{node}/grow": HTML,
    "/api/queues/quorum/replicas/on/{node}/shrink": HTML,
    "/api/queues/quorum/{vhost}/{queue}/replicas/add": HTML,
    "/api/queues/quorum/{vhost}/{queue}/replicas/delete": HTML,
    "/api/queues/{vhost}/{queue}/actions": HTML,
    "/api/queues/{vhost}/{queue}/contents": HTML,
    "/api/reset": HTML,
    "/api/reset/{node}": HTML,
    "/api/user-limits/{user}/{name}": HTML,
    "/api/vhost-limits/{vhost}/{name}": HTML,
    "/api/vhosts/{vhost}/deletion/protection": HTML,
    "/api/vhosts/{vhost}/start/{node}": HTML,
}
# Types of bodies, of paths that do not take any.
_DOCUMENT: Final = (JSON, "multipart/form-data")
BODIES: Final = {
    "/api/all-configuration": _DOCUMENT,
    "/api/definitions": _DOCUMENT,
    "/api/definitions/{vhost}": _DOCUMENT,
    "/api/feature-flags/{name}/enable": (JSON,),
    "/api/operator-policies/{vhost}/{name}": (JSON,),
    "/api/user-limits/{user}/{name}": (JSON,),
    "/api/vhost-limits/{vhost}/{name}": (JSON,),
}
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETERS: Final = rf"(?:\s*;\s*{_TOKEN}(?:=(?:{_TOKEN}|\"[^\"]*\"))?)*"
# Clients of Java send a lone asterisk.
_RANGE: Final = re.compile(rf"\s*({_TOKEN}/{_TOKEN}|\*)({_PARAMETERS})\s*")
_TYPE: Final = re.compile(rf"\s*({_TOKEN}/{_TOKEN}){_PARAMETERS}\s*")


def check_accept(endpoint: Endpoint, headers: Mapping[str, str]) -> None:
    """Raise Refusal if a client does not accept the answers: 406, or 400 for a header that cannot be read.

    Names of headers are in lower case. A weight of 0 does not exclude a type.
    """
    given = headers.get("accept", "").strip()
    if not given or not endpoint.path.startswith(API):
        return
    ranges = [part for part in _split(given) if part.strip()]
    found = [_RANGE.fullmatch(part) for part in ranges]
    if not all(found):
        raise Refusal(400, "bad_request", None)
    answer = ANSWERS.get(endpoint.path, JSON)
    # RabbitMQ's plain texts may have any parameters, other answers have none.
    may_have_parameters = answer == TEXT
    accepted = [one[1].lower() for one in found if one and (may_have_parameters or not _is_narrower(one[2]))]
    if not any(_includes(media_range, answer) for media_range in accepted):
        raise Refusal(406, "not_acceptable", None)


def check_body_type(endpoint: Endpoint, headers: Mapping[str, str]) -> None:
    """Raise Refusal (415) for the type of the body of a PUT or a POST. Names of headers are in lower case."""
    if endpoint.method not in ("PUT", "POST") or not endpoint.path.startswith(API):
        return
    given, accepted = headers.get("content-type"), BODIES.get(endpoint.path)
    found = None if given is None else _TYPE.fullmatch(given)
    if given is None and accepted is None:
        return
    if found is None or (accepted is not None and found[1].lower() not in accepted):
        raise Refusal(415, "unsupported_media_type", None)


def _split(header: str) -> list[str]:
    """Return the elements of a list, whose quoted strings may have commas."""
    return re.findall(r'(?:[^,"]|"[^"]*"|")+', header)


def _includes(media_range: str, media_type: str) -> bool:
    if media_range in ("*", "*/*"):
        return True
    kind, _, subtype = media_range.partition("/")
    return media_type in (media_range, f"{kind}/{media_type.partition('/')[2]}" if subtype == "*" else "")


def _is_narrower(parameters: str) -> bool:
    """Return whether a range is that of a type with parameters, which come before the weight."""
    first = parameters.strip().lstrip(";").strip().partition("=")[0].strip().lower()
    return first not in ("", "q")
