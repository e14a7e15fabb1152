"""/_broker/…: what the command line needs to know and to do beyond RabbitMQ's HTTP API."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from amqp_broker.broker import resetting
from amqp_broker.config import ConfigError
from amqp_broker.management.access import ADMINISTRATOR, MONITORING
from amqp_broker.management.request import NO_CONTENT, Answer, Request, Resource, bad_request, not_authorised


def node(request: Request) -> dict[str, Any]:
    """GET /_broker/node: what is asked most often, and costs next to nothing."""
    return {
        "name": request.broker.node,
        "is_started": request.node.state in ("running", "suspended"),
        "state": request.node.state,
        "problem": request.node.problem,
        "version": request.broker.profile.version,
        "pid": request.node.process_id(),
    }


def status(request: Request) -> dict[str, Any]:
    """GET /_broker/status: all that `status` and the health checks tell."""
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
        "memory_setting": broker.config.vm_memory_high_watermark,
        "disk_free": shell.disk_free(),
        "disk_free_limit": shell.disk_free_limit(),
        "descriptors_used": used,
        "descriptors_limit": limit,
        "connections": len(broker.connections),
        "queues": sum(len(vhost.queues) for vhost in broker.vhosts.values()),
        "vhosts": len(broker.vhosts),
        "data_folder": shell.data_folder(),
        "settings": {
            setting.name: getattr(broker.config, setting.name)
            for setting in fields(broker.config)
            if not setting.metadata["secret"]
        },
    }


def authenticate(request: Request) -> Answer:
    """POST /_broker/authenticate {"user", "password"}: 204 if that is a user's password, else 401."""
    given = request.json()
    name, password = given.get("user"), given.get("password")
    if not isinstance(name, str) or not isinstance(password, str):
        raise bad_request("user and password must be strings")
    user = request.broker.users.get(name)
    if user is None or not user.accepts(password.encode()):
        raise not_authorised("Login failed")
    return NO_CONTENT


def trace(request: Request) -> dict[str, Any]:
    """GET /_broker/trace/{vhost}: whether it is traced, and how."""
    vhost = request.vhost
    return {"is_on": vhost.is_tracing, "extended": vhost.is_trace_extended}


def start_trace(request: Request) -> Answer:
    """PUT /_broker/trace/{vhost}: RabbitMQ's firehose, or with {"extended": true} all that broker/trace.py tells."""
    vhost, given = request.vhost, request.json()
    extended = given.pop("extended", False)
    if given or not isinstance(extended, bool):
        raise bad_request('only "extended" may be given: true or false')
    vhost.start_trace(extended)
    return NO_CONTENT


def stop_trace(request: Request) -> Answer:
    request.vhost.stop_trace()
    return NO_CONTENT


def reset(request: Request) -> Answer:
    """POST /_broker/reset-node: nothing is there any more, of a node that has no clients."""
    if request.node.state != "stopped":
        raise bad_request("the node takes clients; stop_app comes first")
    resetting.reset(request.broker)
    return NO_CONTENT


def setting(change: str) -> Callable[[Request], Answer]:
    """PUT {"value": text} to one of the node's verbs."""

    def put(request: Request) -> Answer:
        value = request.json().get("value")
        if not isinstance(value, str) or not value:
            raise bad_request("value must be a string")
        try:
            getattr(request.node, change)(value)
        except ConfigError as error:
            raise bad_request(str(error)) from None
        return NO_CONTENT

    return put


def verb(name: str) -> Callable[[Request], Answer]:
    """POST, to have the node begin something."""

    def post(request: Request) -> Answer:
        getattr(request.node, name)()
        return Answer(202)

    return post


RESOURCES = (
    Resource("/_broker/node", MONITORING, {"GET": node}),
    Resource("/_broker/status", MONITORING, {"GET": status}),
    Resource("/_broker/authenticate", ADMINISTRATOR, {"POST": authenticate}),
    Resource("/_broker/trace/{vhost}", ADMINISTRATOR, {"GET": trace, "PUT": start_trace, "DELETE": stop_trace}),
    Resource("/_broker/memory-limit", ADMINISTRATOR, {"PUT": setting("set_memory_limit")}),
    Resource("/_broker/disk-free-limit", ADMINISTRATOR, {"PUT": setting("set_disk_free_limit")}),
    Resource("/_broker/log-level", ADMINISTRATOR, {"PUT": setting("set_log_level")}),
    Resource("/_broker/stop", ADMINISTRATOR, {"POST": verb("stop")}),
    Resource("/_broker/stop-app", ADMINISTRATOR, {"POST": verb("stop_app")}),
    Resource("/_broker/start-app", ADMINISTRATOR, {"POST": verb("start_app")}),
    Resource("/_broker/suspend-listeners", ADMINISTRATOR, {"POST": verb("suspend_listeners")}),
    Resource("/_broker/resume-listeners", ADMINISTRATOR, {"POST": verb("resume_listeners")}),
    Resource("/_broker/reset-node", ADMINISTRATOR, {"POST": reset}),
)
