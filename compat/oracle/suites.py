"""The table of all suites."""

from __future__ import annotations

from compat.configured.suite import CONFIGURED
from compat.ctl.suite import CTL
from compat.definitions.suite import DEFINITIONS
from compat.differential.suite import HTTP, WIRE
from compat.management.suite import MANAGEMENT
from compat.management_admin.suite import MANAGEMENT_ADMIN
from compat.message_stats.suite import MESSAGE_STATS
from compat.oracle.suite import Suite
from compat.prometheus.suite import PROMETHEUS
from compat.rabbitmq_conf.suite import RABBITMQ_CONF
from compat.startup.suite import STARTUP
from compat.tls.suite import TLS

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *(WIRE, HTTP, CTL, RABBITMQ_CONF, CONFIGURED, DEFINITIONS, STARTUP, TLS),
        *(MANAGEMENT, MANAGEMENT_ADMIN, MESSAGE_STATS, PROMETHEUS),
    )
}
