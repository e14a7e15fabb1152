"""All resources of the HTTP API, in one list."""

from __future__ import annotations

from typing import Final

from amqp_broker.management import overview
from amqp_broker.management.request import Resource

RESOURCES: Final[tuple[Resource, ...]] = (*overview.RESOURCES,)
