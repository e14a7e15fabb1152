"""Snapshots of a vhost over HTTP.

GET /_broker/snapshot/{vhost}
PUT /_broker/snapshot/{vhost}?clear=true
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.parsing import parsing
from amqp_broker.management.documents.snapshots import NotEmpty, Snapshot, SnapshotError, restoring, taking
from amqp_broker.management.http.answers import CREATED, NO_CONTENT, Answer, Refusal, bad_request
from amqp_broker.management.http.auth import ADMINISTRATOR
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import Switch

endpoints = Endpoints()


class RestoreQuery(Struct):
    """An option to empty the vhost first."""

    clear: Switch = False


@endpoints.on("GET /_broker/snapshot/{vhost}", tag=ADMINISTRATOR)
def get(request: Request) -> Steps[dict[str, Any]]:
    """Return a snapshot of a vhost: its definitions and its messages."""
    return taking(request.broker, request.vhost.name)


@endpoints.on("PUT /_broker/snapshot/{vhost}", tag=ADMINISTRATOR, body=Snapshot, query=RestoreQuery, is_import=True)
def put(request: Request) -> Steps[Answer]:
    """Restore a snapshot; a vhost that is not empty is refused unless `clear=true` empties it."""
    try:
        document = yield from parsing(request.body)
        clear = request.read_query(RestoreQuery).clear
        is_new = yield from restoring(request.broker, document, request.path["vhost"], clear=clear)
    except NotEmpty as error:
        raise Refusal(412, "precondition_failed", f"{error}; clear=true deletes its contents first") from None
    except (SnapshotError, DefinitionsError) as error:
        raise bad_request(str(error)) from None
    users = request.broker.users
    if is_new and request.user.name in users:
        users.set_permission(users[request.user.name], request.path["vhost"], Permission())
    return CREATED if is_new else NO_CONTENT
