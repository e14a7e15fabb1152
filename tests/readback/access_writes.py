"""The writes of the HTTP API about users, permissions, vhosts and limits."""

from __future__ import annotations

from typing import Final

from tests.readback.case import Case, delete, post, put, row, seen
from tests.readback.http_writes import ALL, SECRET, connection, user, vhost

ACCESS: Final = (
    Case(
        "PUT /api/users/{user}",
        put("users/u.made", SECRET),
        row("list_users", "tags", user="u.made"),
        [["management"]],
        is_kept=True,
    ),
    Case(
        "DELETE /api/users/{user}",
        delete("users/u.gone"),
        lambda node: node.can_log_in("u.gone"),
        False,
        [user("u.gone")],
        is_kept=True,
    ),
    Case(
        "POST /api/users/bulk-delete",
        post("users/bulk-delete", {"users": ["u.one", "u.two"]}),
        lambda node: [node.can_log_in(name) for name in ("u.one", "u.two")],
        [False, False],
        [user("u.one"), user("u.two")],
        is_kept=True,
    ),
    Case(
        "PUT /api/permissions/{vhost}/{user}",
        put("permissions/%2F/u.may", ALL | {"read": "^r"}),
        row("list_permissions", "configure", "write", "read", user="u.may"),
        [".*", ".*", "^r"],
        [put("users/u.may", SECRET)],
        is_kept=True,
    ),
    Case(
        "DELETE /api/permissions/{vhost}/{user}",
        delete("permissions/%2F/u.not"),
        lambda node: node.can_log_in("u.not"),
        False,
        [user("u.not")],
        is_kept=True,
    ),
    *(
        Case(
            f"PUT /api/topic-permissions/{{vhost}}/{{user}}{further}",
            put(f"topic-permissions/%2F/{name}{at}", {"exchange": "amq.topic", "write": "^w", "read": "^r"}),
            row("list_topic_permissions", "exchange", "write", "read", user=name),
            ["amq.topic", "^w", "^r"],
            [user(name)],
            is_kept=True,
        )
        for name, further, at in (("u.topic", "", ""), ("u.topics", "/{exchange}", "/amq.topic"))
    ),
    *(
        Case(
            f"DELETE /api/topic-permissions/{{vhost}}/{{user}}{further}",
            delete(f"topic-permissions/%2F/{name}{at}"),
            row("list_topic_permissions", user=name),
            False,
            [user(name), put(f"topic-permissions/%2F/{name}", {"exchange": "amq.topic", "write": "", "read": ""})],
            is_kept=True,
        )
        for name, further, at in (("u.untopic", "", ""), ("u.untopics", "/{exchange}", "/amq.topic"))
    ),
    Case(
        "DELETE /api/auth/attempts/{node}",
        lambda node: node.write("DELETE", f"auth/attempts/{node.name}"),
        # Each tool logs in for itself, by another protocol.
        lambda node: (
            [each["auth_attempts"] for each in node.get(f"auth/attempts/{node.name}") if each["protocol"] == "amqp091"]
            or [0]
        ),
        [0],
        [connection("counted")],
    ),
    Case(
        "PUT /api/user-limits/{user}/{name}",
        put("user-limits/u.limited/max-channels", {"value": 9}),
        row("list_user_limits --global", "limits", user="u.limited"),
        ['{"max-channels":9}'],
        [user("u.limited")],
        is_kept=True,
    ),
    Case(
        "DELETE /api/user-limits/{user}/{name}",
        delete("user-limits/u.unlimited/max-connections"),
        lambda node: node.can_log_in("u.unlimited"),
        True,
        [user("u.unlimited"), put("user-limits/u.unlimited/max-connections", {"value": 0})],
        is_kept=True,
    ),
)

VHOSTS: Final = (
    Case(
        "PUT /api/vhosts/{vhost}",
        vhost("v.made", description="text", tags="a"),
        row("list_vhosts name description tags", "description", "tags", name="v.made"),
        ["text", ["a"]],
        is_kept=True,
    ),
    Case(
        "DELETE /api/vhosts/{vhost}",
        delete("vhosts/v.gone"),
        row("list_vhosts name", name="v.gone"),
        False,
        [vhost("v.gone")],
        is_kept=True,
    ),
    Case(
        "POST /api/vhosts/{vhost}/deletion/protection",
        post("vhosts/v.safe/deletion/protection"),
        seen("vhosts/v.safe", "protected_from_deletion"),
        True,
        [vhost("v.safe")],
        is_kept=True,
    ),
    Case(
        "DELETE /api/vhosts/{vhost}/deletion/protection",
        delete("vhosts/v.unsafe/deletion/protection"),
        seen("vhosts/v.unsafe", "protected_from_deletion"),
        False,
        [vhost("v.unsafe", protected_from_deletion=True)],
        is_kept=True,
    ),
    Case(
        "PUT /api/vhost-limits/{vhost}/{name}",
        put("vhost-limits/v.limited/max-queues", {"value": 3}),
        row("list_vhost_limits --global", "limits", vhost="v.limited"),
        ['{"max-queues":3}'],
        [vhost("v.limited")],
        is_kept=True,
    ),
    Case(
        "DELETE /api/vhost-limits/{vhost}/{name}",
        delete("vhost-limits/v.unlimited/max-queues"),
        # RabbitMQ lists the vhost still.
        row("list_vhost_limits --global", "limits", vhost="v.unlimited"),
        ["{}"],
        [vhost("v.unlimited"), put("vhost-limits/v.unlimited/max-queues", {"value": 3})],
        is_kept=True,
    ),
)
