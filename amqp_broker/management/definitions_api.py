"""Definitions over HTTP: all, or those of a vhost, as a document to keep and to send back.

Source: rabbit_mgmt_wm_definitions.erl.
"""

from __future__ import annotations

import re
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from amqp_broker.management.access import ADMINISTRATOR
from amqp_broker.management.definitions import NotJSON, export, import_, parse
from amqp_broker.management.importing import DefinitionsError
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, bad_request


def get(request: Request) -> Any:
    if "vhost" in request.path and request.path["vhost"] not in request.broker.vhosts:
        raise bad_request("vhost_not_found")
    document = export(request.broker, request.path.get("vhost"))
    if "download" not in request.query:
        return document
    # A name that goes into a header has no line ends, quotes or folders.
    name = re.sub(r"[^\w.@-]", "_", request.query["download"], flags=re.ASCII)[:200]
    return Answer(200, document, {"Content-Disposition": f"attachment; filename={name or 'definitions.json'}"})


def post(request: Request) -> Answer:
    if "vhost" in request.path and request.path["vhost"] not in request.broker.vhosts:
        raise bad_request("vhost_not_found")
    try:
        document = parse(_document(request))
        import_(request.broker, document, request.path.get("vhost"), request.user.name)
    except NotJSON:
        raise bad_request("failed_to_parse_json") from None
    except DefinitionsError as error:
        raise bad_request(str(error)) from None
    return NO_CONTENT


def _document(request: Request) -> bytes:
    """What was sent, or what the part `file` of a form has. Raises Refusal."""
    kind = request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        return request.body
    head = b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n"
    form = BytesParser(policy=HTTP).parsebytes(head + request.body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "file":
            octets = part.get_payload(decode=True)
            return octets if isinstance(octets, bytes) else b""
    raise bad_request("the form has no part 'file'")


_HANDLERS = {"GET": get, "POST": post}

RESOURCES = (
    Resource("/api/definitions", ADMINISTRATOR, _HANDLERS),
    Resource("/api/all-configuration", ADMINISTRATOR, _HANDLERS),
    Resource("/api/definitions/{vhost}", ADMINISTRATOR, _HANDLERS),
)
