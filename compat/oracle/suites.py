"""The table of all suites."""

from __future__ import annotations

import os
from datetime import date

from compat.configured.suite import CONFIGURED
from compat.ctl.running import WITHOUT_ADMIN
from compat.ctl.suite import CTL
from compat.definitions.suite import DEFINITIONS
from compat.differential.suite import WIRE
from compat.management.suite import MANAGEMENT
from compat.management_admin.suite import MANAGEMENT_ADMIN
from compat.message_stats.suite import MESSAGE_STATS
from compat.oracle.suite import Suite
from compat.oracles.oracle import ORACLES
from compat.prometheus.suite import PROMETHEUS
from compat.rabbitmq_conf.suite import RABBITMQ_CONF
from compat.tls.suite import TLS
from compat.turns import in_turn

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *(WIRE, CTL, RABBITMQ_CONF, CONFIGURED, DEFINITIONS, TLS),
        *(MANAGEMENT, MANAGEMENT_ADMIN, MESSAGE_STATS, PROMETHEUS),
    )
}


def of_today(today: date) -> list[str]:
    """Return the names of the suites that `make verify` asks: all of them, in CI half of them each time.

    The halves take turns when each oracle has had its day.
    """
    half = today.toordinal() // len(ORACLES) % 2
    return list(SUITES)[half::2] if os.environ.get("CI") else list(SUITES)


def areas_of_today(name: str, today: date) -> list[str]:
    """Return the areas of a suite that `make verify` asks of RabbitMQ: all at once, as "", or in CI two in turn.

    Only the areas of the command lines take turns, because each of RabbitMQ's commands takes a second.
    """
    if name != CTL.name or not os.environ.get("CI"):
        return [""]
    return in_turn([f"{area}/" for area in WITHOUT_ADMIN], 2, today.toordinal() // (2 * len(ORACLES)))
