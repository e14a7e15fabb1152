"""The inputs: each has the shape of files and variables that people have, in words of its own.

In texts, `{folder}` is the folder of the input, in which `etc` is in the place of /etc/rabbitmq, and `{port}` and
`{http_port}` are free ports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Input:
    """Files, variables and arguments; `login` are user and password of the client that looks at the result."""

    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    login: tuple[str, str] = ("guest", "guest")
    vhost: str = "/"


_ROPE: Final = ("rope", "knots")
_USER = {"name": "rope", "password": "knots", "tags": "administrator"}
_DEFINITIONS = json.dumps(
    {
        "users": [_USER],
        "vhosts": [{"name": "/"}, {"name": "harbour"}],
        "permissions": [{"user": "rope", "vhost": "/", "configure": ".*", "write": ".*", "read": "^b"}],
        "queues": [{"name": "boats", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}],
        "exchanges": [
            {
                "name": "piers",
                "vhost": "harbour",
                "type": "topic",
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {},
            }
        ],
    }
)
_IMPOSSIBLE: Final = json.dumps(
    {
        **json.loads(_DEFINITIONS),
        "queues": [
            {
                "name": "boats",
                "vhost": "/",
                "durable": True,
                "auto_delete": False,
                "arguments": {"x-queue-type": "quorum", "x-queue-mode": "lazy"},
            }
        ],
    }
)
# As rabbitmqadmin 0.x and hand-written files have them: objects that exist, empty lists in the place of objects, a user
# who cannot log in.
_LOOSE: Final = json.dumps(
    {
        "rabbit_version": "3.8.2",
        "users": [{**_USER, "tags": "administrator,crew"}, {"name": "gull", "tags": "", "limits": {}}],
        "vhosts": [
            {"name": "/", "limits": [], "metadata": {"description": "Default virtual host", "tags": []}},
            {"name": "/harbour"},
        ],
        "permissions": [
            {"user": "rope", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
            {"user": "gull", "vhost": "/harbour", "configure": "^$", "write": "boats", "read": "^$"},
        ],
        "exchanges": [
            {"name": name, "vhost": "/", "type": kind, "durable": True, "auto_delete": False, "arguments": []}
            for name, kind in (("", "direct"), ("amq.match", "headers"), ("amq.topic", "topic"), ("piers", "fanout"))
        ],
        "queues": [{"name": "tide/high", "vhost": "/", "type": "classic", "durable": True, "auto_delete": False}],
        "bindings": [
            {
                "source": "piers",
                "vhost": "/",
                "destination": "tide/high",
                "destination_type": "queue",
                "routing_key": "*",
            }
        ],
    }
)
_MIRRORED: Final = json.dumps(
    {
        **json.loads(_DEFINITIONS),
        "policies": [{"vhost": "/", "name": "ha", "pattern": ".", "definition": {"ha-mode": "all"}}],
    }
)
_SHOVELLED: Final = json.dumps(
    {
        **json.loads(_DEFINITIONS),
        "queues": [
            {"name": "boats", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}},
            {
                "name": "wakes",
                "vhost": "/",
                "durable": True,
                "auto_delete": False,
                "arguments": {"x-queue-type": "stream", "x-max-age": "1M"},
            },
        ],
        "exchanges": [{"name": "piers", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False}],
        "parameters": [
            {
                "component": "shovel",
                "vhost": "/",
                "name": "tow",
                "value": {
                    "ack-mode": "on-confirm",
                    "src-protocol": "amqp091",
                    "src-uri": "amqp:///%2F",
                    "src-queue": "boats",
                    "src-delete-after": "never",
                    "dest-protocol": "amqp091",
                    "dest-uri": "amqp:///%2F",
                    "dest-queue": "docks",
                },
            }
        ],
    }
)
_MANAGEMENT = "[rabbitmq_management]."
_HTTP = "management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {http_port}\n"
_ARGUMENTS: Final = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"


_SOURCE: Final = """{source, [{protocol, amqp091}, {uris, ["amqp://"]}, {queue, <<"boats">>},
    {declarations, [{'exchange.declare', [{exchange, <<"piers">>}, {type, <<"fanout">>}, durable]},
                    {'queue.declare', [{queue, <<"boats">>}, durable]},
                    {'queue.bind', [{exchange, <<"piers">>}, {queue, <<"boats">>}]}]}]}"""
_DESTINATION: Final = """{destination, [{protocol, amqp091}, {uris, ["amqp://"]},
    {declarations, [{'queue.declare', [{queue, <<"tides">>}, durable]}]},
    {publish_fields, [{exchange, <<"">>}, {routing_key, <<"tides">>}]}]}"""


def _shovels(*shovels: str) -> str:
    return f"[{{rabbitmq_shovel, [{{shovels, [{', '.join(f'{{{shovel}}}' for shovel in shovels)}]}}]}}].\n"


def _terms(*settings: str) -> str:
    return f"[{{rabbit, [{', '.join(settings)}]}}].\n"


INPUTS: Final[Mapping[str, Input]] = {
    "nothing at all": Input(),
    "definitions named in quotes by the arguments of the virtual machine": Input(
        {"etc/all.json": _DEFINITIONS, "etc/enabled_plugins": _MANAGEMENT, "etc/rabbitmq.conf": _HTTP},
        {_ARGUMENTS: '-rabbitmq_management load_definitions "{folder}/etc/all.json"'},
        login=_ROPE,
    ),
    "binaries, lists and tuples among the arguments of the virtual machine": Input(
        variables={
            _ARGUMENTS: '-rabbit default_user <<"rope">> default_pass <<"knots">> '
            "log [{console,[{level,info}]}] heartbeat 17"
        },
        login=_ROPE,
    ),
    "arguments of the virtual machine behind rabbitmq-server": Input(
        arguments=("-rabbit", "heartbeat", "31", "+S", "1:1")
    ),
    "words and options behind rabbitmq-server that it does not know": Input(
        arguments=("start", "--hostname", "harbour", "--no-prompt", "-rabbit", "heartbeat", "32")
    ),
    "arguments of the virtual machine in RABBITMQ_SERVER_START_ARGS": Input(
        variables={"RABBITMQ_SERVER_START_ARGS": "-rabbit channel_max 33"}
    ),
    "advanced.config without a limit for consumers, and numbers as Erlang writes them": Input(
        {"etc/advanced.config": _terms("{consumer_timeout, undefined}", "{heartbeat, 16#1E}", "{channel_max, 1_000}")}
    ),
    "advanced.config with a user in UTF-8, adjacent strings and characters": Input(
        {
            "etc/advanced.config": "%% -*- erlang -*-\n"
            + _terms('{default_user, <<"ro" "pe"/utf8>>}', '{default_pass, <<"kn", $o, "ts">>}', "{heartbeat, $A}")
        },
        login=_ROPE,
    ),
    "a rabbitmq.config beside rabbitmq.conf": Input(
        {"etc/rabbitmq.conf": "heartbeat = 11\nchannel_max = 12\n", "etc/rabbitmq.config": _terms("{heartbeat, 13}")}
    ),
    "a rabbitmq.config alone": Input({"etc/rabbitmq.config": _terms("{heartbeat, 13}", "{channel_max, 14}")}),
    "a file of settings without a suffix": Input(
        {"etc/settings": "heartbeat = 15\n"}, {"RABBITMQ_CONFIG_FILE": "{folder}/etc/settings"}
    ),
    "a file of Erlang terms without a suffix": Input(
        {"etc/settings": _terms("{heartbeat, 16}")}, {"RABBITMQ_CONFIG_FILE": "{folder}/etc/settings"}
    ),
    "files in conf.d, of which the last counts": Input(
        {
            "etc/rabbitmq.conf": "heartbeat = 18\nchannel_max = 19\n",
            "etc/conf.d/10-first.conf": "heartbeat = 20\n",
            "etc/conf.d/20-second.conf": "heartbeat = 21\n",
        }
    ),
    "variables of the environment in rabbitmq.conf": Input(
        {"etc/rabbitmq.conf": "default_user = $(SEED_USER)\ndefault_pass = $(SEED_PASSWORD)\n"},
        {"SEED_USER": "rope", "SEED_PASSWORD": "knots"},
        login=_ROPE,
    ),
    "the first user and vhost in the environment": Input(
        variables={
            "RABBITMQ_DEFAULT_USER": "rope",
            "RABBITMQ_DEFAULT_PASS": "knots",
            "RABBITMQ_DEFAULT_VHOST": "harbour",
        },
        login=_ROPE,
        vhost="harbour",
    ),
    "variables of clients, which name a user, a password and a vhost": Input(
        variables={"RABBITMQ_USERNAME": "rope", "RABBITMQ_PASSWORD": "knots", "RABBITMQ_VHOST": "harbour"}
    ),
    "a file of variables whose names lack the prefix": Input(
        {"etc/rabbitmq-env.conf": 'SERVER_ADDITIONAL_ERL_ARGS="-rabbit heartbeat 23"\n'}
    ),
    "definitions with plain passwords": Input(
        {"etc/all.json": _DEFINITIONS, "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n"}, login=_ROPE
    ),
    "definitions of the management plugin": Input(
        {
            "etc/all.json": _DEFINITIONS,
            "etc/enabled_plugins": _MANAGEMENT,
            "etc/rabbitmq.conf": _HTTP + "management.load_definitions = {folder}/etc/all.json\n",
        },
        login=_ROPE,
    ),
    "plugins that require others": Input(
        {
            "etc/enabled_plugins": "[rabbitmq_shovel_management,rabbitmq_consistent_hash_exchange].",
            "etc/rabbitmq.conf": _HTTP,
        }
    ),
    "frames without a limit": Input({"etc/rabbitmq.conf": "frame_max = 0\n"}),
    "an unknown key": Input({"etc/rabbitmq.conf": "heartbaet = 5\n"}),
    "limits by their names in RabbitMQ 4.3": Input(
        {"etc/rabbitmq.conf": "max_channels_per_connection = 24\nmax_connections = 100\n"}
    ),
    "a user who may do little": Input(
        {
            "etc/rabbitmq.conf": "default_user = rope\ndefault_pass = knots\ndefault_user_tags.monitoring = true\n"
            "default_permissions.configure = ^$\ndefault_permissions.read = .*\ndefault_permissions.write = ^boats$\n"
        },
        login=_ROPE,
    ),
    "a static shovel of each form": Input(
        {
            "etc/enabled_plugins": "[rabbitmq_shovel].",
            "etc/advanced.config": _shovels(
                f"hand_over, [{_SOURCE}, {_DESTINATION}, {{reconnect_delay, 1}}]",
                """old_one, [{sources, [{broker, "amqp://"}, {declarations, [
                {'queue.declare', [{queue, <<"crates">>}, durable]}]}]}, {destinations, [{brokers, ["amqp://"]}]},
                {queue, <<"crates">>}, {publish_fields, [{routing_key, <<"tides">>}]}]""",
            ),
        }
    ),
    "a static shovel without a destination": Input(
        {"etc/enabled_plugins": "[rabbitmq_shovel].", "etc/advanced.config": _shovels(f"hand_over, [{_SOURCE}]")}
    ),
    "users of new vhosts, and settings of other applications": Input(
        {
            "etc/rabbitmq.conf": "default_user = rope\ndefault_pass = knots\ndefault_users.anna.password = x\n"
            "default_users.anna.tags = monitoring\ndefault_users.anna.configure = ^a\n"
            "default_users.bert.vhost_pattern = ^harbour$\n",
            "etc/advanced.config": "[{kernel, [{net_ticktime, 60}]}, {rabbit, [{consumer_timeout, 7200000}]}].",
        },
        login=_ROPE,
    ),
    "a default user who is among those of new vhosts": Input(
        {"etc/rabbitmq.conf": "default_users.guest.password = x\ndefault_users.guest.tags = monitoring\n"}
    ),
    "limits and operator policies of new vhosts": Input(
        {
            "etc/rabbitmq.conf": "default_policies.operator.a.vhost_pattern = ^harbour$\n"
            "default_policies.operator.a.expires = 1h\ndefault_policies.operator.b.message_ttl = 1m30s\n"
            "default_policies.operator.b.queue_pattern = ^b\ndefault_policies.operator.b.max_length_bytes = 1GB\n"
            "default_limits.vhosts.2.max_queues = 20\ndefault_limits.vhosts.10.max_connections = 10\n"
            "default_limits.vhosts.1.pattern = ^harbour$\ndefault_limits.vhosts.1.max_queues = 1\n"
        }
    ),
    "limits and operator policies of new vhosts as Erlang terms": Input(
        {
            "etc/all.json": _DEFINITIONS,
            "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n",
            "etc/advanced.config": _terms(
                '{default_limits, [{vhosts, [{<<"1">>, [{<<"pattern">>, "^harbour$"}, {<<"max_queues">>, 1}]}]}]}',
                '{default_policies, [{operator, [{<<"a">>, [{<<"vhost_pattern">>, "^harbour$"}, '
                '{<<"expires">>, 3600000}]}]}]}',
            ),
        },
        login=_ROPE,
    ),
    "limits and operator policies of new vhosts among definitions": Input(
        {
            "etc/all.json": _DEFINITIONS,
            "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n"
            "default_policies.operator.a.vhost_pattern = ^harbour$\ndefault_policies.operator.a.expires = 1h\n"
            "default_limits.vhosts.1.pattern = ^harbour$\ndefault_limits.vhosts.1.max_queues = 1\n",
        },
        login=_ROPE,
    ),
    "an operator policy of new vhosts that RabbitMQ 4 refuses": Input(
        {"etc/rabbitmq.conf": "default_policies.operator.a.classic_queues.ha_mode = all\n"}
    ),
    "a default type of queues": Input({"etc/rabbitmq.conf": "default_queue_type = quorum\n"}),
    "definitions with objects that exist, and a user who cannot log in": Input(
        {"etc/all.json": _LOOSE, "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n"}, login=_ROPE
    ),
    "definitions with a policy of mirrored queues": Input(
        {"etc/all.json": _MIRRORED, "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n"}, login=_ROPE
    ),
    "definitions with a shovel": Input(
        {
            "etc/all.json": _SHOVELLED,
            "etc/enabled_plugins": "[rabbitmq_shovel].",
            "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n",
        },
        login=_ROPE,
    ),
    "definitions with a queue that no version can have": Input(
        {"etc/all.json": _IMPOSSIBLE, "etc/rabbitmq.conf": "load_definitions = {folder}/etc/all.json\n"}, login=_ROPE
    ),
}
