"""Definitions over HTTP: export and import, of the broker or of a vhost.

Source: rabbit_mgmt_wm_definitions.erl.
"""

from __future__ import annotations

import re
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, Final

from msgspec import Struct

from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.disposable import Disposable
from amqp_broker.management.documents.exporting import exporting
from amqp_broker.management.documents.importing import importing
from amqp_broker.management.documents.parsing import NotJSON, parsing
from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()

PATHS: Final = ("/api/definitions", "/api/all-configuration", "/api/definitions/{vhost}")
Objects = list[dict[str, Any]]


class ExportQuery(Struct):
    """A file name for the header Content-Disposition."""

    download: str | None = None


class Definitions(Struct):
    """A document of definitions; `documents/importing.py` reads and checks it."""

    users: Objects = []
    vhosts: Objects = []
    permissions: Objects = []
    topic_permissions: Objects = []
    parameters: Objects = []
    global_parameters: Objects = []
    policies: Objects = []
    queues: Objects = []
    exchanges: Objects = []
    bindings: Objects = []


@endpoints.on(*(f"GET {path}" for path in PATHS), tag=ADMINISTRATOR, query=ExportQuery)
def get(request: Request) -> Steps[Any]:
    """Export [definitions](definitions.md), of one vhost or of the broker."""
    if "vhost" in request.path and request.path["vhost"] not in request.broker.vhosts:
        raise bad_request("vhost_not_found")
    document = yield from exporting(request.broker, request.path.get("vhost"))
    download = request.read_query(ExportQuery).download
    if download is None:
        return document
    # A file name in a header must not contain line ends, quotes or folders.
    name = re.sub(r"[^\w.@-]", "_", download, flags=re.ASCII)[:200]
    return Answer(200, document, {"Content-Disposition": f"attachment; filename={name or 'definitions.json'}"})


@endpoints.on(*(f"POST {path}" for path in PATHS), tag=ADMINISTRATOR, body=Definitions, is_import=True)
def post(request: Request) -> Steps[Answer]:
    """Import definitions, into one vhost or the broker."""
    vhost = request.vhost.name if "vhost" in request.path else None
    try:
        document = yield from parsing(_document(request))
        if isinstance(document, dict):
            document = {name: Disposable(it) if isinstance(it, list) else it for name, it in document.items()}
        yield from importing(request.broker, document, vhost, request.user.name)
    except NotJSON:
        raise bad_request("failed_to_parse_json") from None
    except DefinitionsError as error:
        raise bad_request(str(error)) from None
    return NO_CONTENT


def _document(request: Request) -> bytes:
    """Return the body, or the part `file` of a form. Raise Refusal for a form without it."""
    kind = request.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/form-data"):
        return request.body
    head = b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n"
    form = BytesParser(policy=HTTP).parsebytes(head + request.body)
    for part in form.iter_parts() if form.is_multipart() else ():
        if part.get_param("name", header="content-disposition") == "file":
            octets = part.get_payload(decode=True)
            return octets if isinstance(octets, bytes) else b""
    raise bad_request("the form has no part named 'file'")
