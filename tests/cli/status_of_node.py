"""Status of a healthy node."""

from __future__ import annotations

from typing import Any

from tests.cli.canned import NODE_STATE, canned

STATUS: dict[str, Any] = {
    **NODE_STATE,
    "os": "Linux",
    "python": "3.13",
    "uptime_s": 5,
    "listeners": [{"protocol": "amqp", "host": "::", "port": 5672}, {"protocol": "http", "host": "::", "port": 15672}],
    "alarms": [],
    "memory_used": 30_000_000,
    "memory_limit": 2_000_000_000,
    "memory_setting": "0.6",
    "disk_free": 10**10,
    "disk_free_limit": 5 * 10**7,
    "descriptors_used": 9,
    "descriptors_limit": 1024,
    "connections": 1,
    "queues": 2,
    "vhosts": 3,
    "data_folder": "",
    "config_files": ["/etc/rabbitmq/rabbitmq.conf"],
    "log_files": ["/var/log/rabbitmq/rabbit.log", "<stdout>"],
    "plugins": ["rabbitmq_management", "rabbitmq_mqtt"],
    "settings": {"port": 5672, "host": "localhost", "connection_max": None, "enabled_plugins_file": "/etc/plugins"},
}


def diagnose(line: str, **changed: Any) -> tuple[str, str, int]:
    status = {**STATUS, **changed}
    node = {name: status[name] for name in NODE_STATE}
    with canned({"GET /_broker/status": status, "GET /_broker/node": node}) as api:
        return api.run(f"rabbitmq-diagnostics {line}")
