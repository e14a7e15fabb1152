"""The state of the node, and starting, stopping and limiting it: for the command line."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Struct

from amqp_broker.management.http.answers import NO_CONTENT, Answer, bad_request, not_found
from amqp_broker.management.http.auth import ADMINISTRATOR, MONITORING
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.http.shapes import read_by, string
from amqp_broker.settings import plugins
from amqp_broker.settings.settings import SETTINGS, SettingsError
from amqp_broker.settings.sources.conf_keys import settings_of
from amqp_broker.settings.sources.erlang_settings import from_config

endpoints = Endpoints()

ACCEPTED: Final = Answer(202)


def _value(name: str, value: Any) -> str:
    if not string(name, value):
        raise bad_request(f"{name} must be a string")
    return str(value)


@endpoints.on("GET /_broker/node", tag=MONITORING)
def node(request: Request) -> dict[str, Any]:
    """Return the name and the state of the node, for frequent requests."""
    return {
        "name": request.broker.node,
        "is_started": request.node.state in ("running", "suspended"),
        "state": request.node.state,
        "problem": request.node.problem,
        "version": request.broker.profile.version,
        "pid": request.node.process_id(),
    }


@endpoints.on("GET /_broker/status", tag=MONITORING)
def status(request: Request) -> dict[str, Any]:
    """Return the state, limits, listeners and settings of the node."""
    broker, shell = request.broker, request.node
    used, limit = shell.descriptors()
    return {
        **node(request),
        "os": platform.system(),
        "python": platform.python_version(),
        "uptime_s": max(0, shell.real_now() - shell.started_at_ms) // 1000,
        "listeners": [listener._asdict() for listener in shell.listeners()],
        "alarms": sorted(broker.alarms),
        "memory_used": shell.memory_used(),
        "memory_limit": shell.memory_limit(),
        "memory_setting": shell.memory_setting(),
        "disk_free": shell.disk_free(),
        "disk_free_limit": shell.disk_free_limit(),
        "descriptors_used": used,
        "descriptors_limit": limit,
        "connections": len(broker.connections),
        "queues": sum(len(vhost.queues) for vhost in broker.vhosts.values()),
        "vhosts": len(broker.vhosts),
        "data_folder": shell.data_folder(),
        "config_files": list(shell.config_files()),
        "log_files": broker.settings.log_files,
        "plugins": plugins.explicit(broker.settings),
        "settings": {
            setting.name: getattr(broker.settings, setting.name) for setting in SETTINGS if not setting.is_secret
        },
    }


class Setting(Struct):
    """The new value of a setting, as in the configuration file."""

    value: Annotated[str, read_by(_value)]


def _set(request: Request, change: Callable[[str], None]) -> Answer:
    try:
        change(request.read(Setting).value)
    except SettingsError as error:
        raise bad_request(str(error)) from None
    return NO_CONTENT


@endpoints.on("PUT /_broker/memory-limit", tag=ADMINISTRATOR, body=Setting, statuses=(204,))
def set_memory_limit(request: Request) -> Answer:
    """Set the memory limit (`set_vm_memory_high_watermark`)."""
    return _set(request, request.node.set_memory_limit)


@endpoints.on("PUT /_broker/disk-free-limit", tag=ADMINISTRATOR, body=Setting, statuses=(204,))
def set_disk_free_limit(request: Request) -> Answer:
    """Set the limit of free disk space (`set_disk_free_limit`)."""
    return _set(request, request.node.set_disk_free_limit)


@endpoints.on("PUT /_broker/alarms/{resource}", tag=ADMINISTRATOR, statuses=(204,))
def set_alarm(request: Request) -> Answer:
    """Set the alarm of `memory` or `disk`, which blocks publishers until it is cleared."""
    return _command_alarm(request, is_on=True)


@endpoints.on("DELETE /_broker/alarms/{resource}", tag=ADMINISTRATOR)
def clear_alarm(request: Request) -> Answer:
    """Clear the alarm of `memory` or `disk`, until a limit is exceeded anew."""
    return _command_alarm(request, is_on=False)


def _command_alarm(request: Request, *, is_on: bool) -> Answer:
    resource = request.path["resource"]
    if resource not in ("memory", "disk"):
        raise not_found()
    request.node.set_alarm(resource, is_on)
    return NO_CONTENT


@endpoints.on("PUT /_broker/disk-monitoring", tag=ADMINISTRATOR, statuses=(204,))
def watch_disk(request: Request) -> Answer:
    """Watch the free disk space, as by default."""
    request.node.watch_disk(True)
    return NO_CONTENT


@endpoints.on("DELETE /_broker/disk-monitoring", tag=ADMINISTRATOR)
def ignore_disk(request: Request) -> Answer:
    """Stop watching the free disk space."""
    request.node.watch_disk(False)
    return NO_CONTENT


@endpoints.on("PUT /_broker/environment", tag=ADMINISTRATOR, body=Setting, statuses=(204,))
def set_environment(request: Request) -> Answer:
    """Set settings in the format of advanced.config, for connections and queues from now on."""
    entries, about = from_config(request.read(Setting).value, "environment")
    given, notices = settings_of(entries)
    wrong = [notice.text for notice in about]
    wrong += [notice.text for notice in notices if notice.is_wrong]
    if wrong:
        raise bad_request("; ".join(wrong))
    broker = request.broker
    changes = {name: value for name, (value, _) in given.items()}
    if "loopback_users" in changes:
        # The list counts as it is given, even if `remote_guest` has left out guest so far.
        changes["remote_guest"] = False
    broker.settings = replace(broker.settings, **changes).resolved()
    broker.logins.local_users = broker.settings.local_users
    return NO_CONTENT


@endpoints.on("PUT /_broker/log-level", tag=ADMINISTRATOR, body=Setting, statuses=(204,))
def set_log_level(request: Request) -> Answer:
    """Set the level of the log (`set_log_level`)."""
    return _set(request, request.node.set_log_level)


@endpoints.on("POST /_broker/stop", tag=ADMINISTRATOR, statuses=(202,))
def stop(request: Request) -> Answer:
    """Stop the broker and its process."""
    request.node.stop()
    return ACCEPTED


@endpoints.on("POST /_broker/stop-app", tag=ADMINISTRATOR, statuses=(202,))
def stop_app(request: Request) -> Answer:
    """Close all connections and listeners (`stop_app`)."""
    request.node.stop_app()
    return ACCEPTED


@endpoints.on("POST /_broker/start-app", tag=ADMINISTRATOR, statuses=(202,))
def start_app(request: Request) -> Answer:
    """Open the listeners again (`start_app`)."""
    request.node.start_app()
    return ACCEPTED


@endpoints.on("POST /_broker/suspend-listeners", tag=ADMINISTRATOR, statuses=(202,))
def suspend_listeners(request: Request) -> Answer:
    """Accept no new connections; open ones stay (`suspend_listeners`)."""
    request.node.suspend_listeners()
    return ACCEPTED


@endpoints.on("POST /_broker/resume-listeners", tag=ADMINISTRATOR, statuses=(202,))
def resume_listeners(request: Request) -> Answer:
    """Accept new connections again (`resume_listeners`)."""
    request.node.resume_listeners()
    return ACCEPTED
