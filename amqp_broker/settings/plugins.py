"""RabbitMQ's plugins by name, and which of them require others. Source: the files *.app of RabbitMQ 4.0.5."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amqp_broker.settings.settings import Settings

# Plugins of RabbitMQ and frequent ones of its community, each with the plugins that it requires.
_ALONE = """rabbitmq_amqp1_0 rabbitmq_auth_backend_cache rabbitmq_auth_backend_http rabbitmq_auth_backend_ldap
    rabbitmq_auth_backend_oauth2 rabbitmq_auth_mechanism_ssl rabbitmq_consistent_hash_exchange
    rabbitmq_delayed_message_exchange rabbitmq_event_exchange rabbitmq_federation rabbitmq_jms_topic_exchange
    rabbitmq_mqtt rabbitmq_random_exchange rabbitmq_recent_history_exchange rabbitmq_sharding rabbitmq_shovel
    rabbitmq_stomp rabbitmq_stream_common rabbitmq_web_dispatch"""
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_ALONE.split(), ()),
    "rabbitmq_federation_management": ("rabbitmq_federation", "rabbitmq_management"),
    "rabbitmq_federation_prometheus": ("rabbitmq_federation", "rabbitmq_prometheus"),
    "rabbitmq_management": ("rabbitmq_management_agent", "rabbitmq_web_dispatch"),
    "rabbitmq_management_agent": ("rabbitmq_web_dispatch",),
    **{f"rabbitmq_peer_discovery_{name}": ("rabbitmq_peer_discovery_common",) for name in ("aws", "consul")},
    **{f"rabbitmq_peer_discovery_{name}": ("rabbitmq_peer_discovery_common",) for name in ("etcd", "k8s")},
    "rabbitmq_peer_discovery_common": (),
    "rabbitmq_prometheus": ("rabbitmq_management_agent", "rabbitmq_web_dispatch"),
    "rabbitmq_shovel_management": ("rabbitmq_management", "rabbitmq_shovel"),
    "rabbitmq_shovel_prometheus": ("rabbitmq_prometheus", "rabbitmq_shovel"),
    "rabbitmq_stream": ("rabbitmq_stream_common",),
    "rabbitmq_stream_management": ("rabbitmq_management", "rabbitmq_stream"),
    "rabbitmq_top": ("rabbitmq_management",),
    "rabbitmq_tracing": ("rabbitmq_management",),
    "rabbitmq_trust_store": (),
    "rabbitmq_web_mqtt": ("rabbitmq_mqtt", "rabbitmq_web_dispatch"),
    "rabbitmq_web_mqtt_examples": ("rabbitmq_web_mqtt",),
    "rabbitmq_web_stomp": ("rabbitmq_stomp", "rabbitmq_web_dispatch"),
    "rabbitmq_web_stomp_examples": ("rabbitmq_web_stomp",),
}

# Plugins whose functions are built into this broker: RabbitMQ's own, and one of its community.
BUILT_IN = {
    "rabbitmq_auth_backend_cache",
    "rabbitmq_auth_backend_http",
    "rabbitmq_auth_mechanism_ssl",
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_event_exchange",
    "rabbitmq_management",
    "rabbitmq_management_agent",
    "rabbitmq_prometheus",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_sharding",
    "rabbitmq_shovel",
    "rabbitmq_shovel_management",
    "rabbitmq_shovel_prometheus",
    "rabbitmq_web_dispatch",
}
# Of these, the ones that run without being named: exchange types, the event exchange and shovels.
ALWAYS_ON = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_delayed_message_exchange",
    "rabbitmq_event_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_shovel",
)
# Values of the setting `plugins`: all that are built in, and none.
ALL_PLUGINS = "ALL"
NO_PLUGINS = "none"


def with_needed(names: Iterable[str]) -> list[str]:
    """Return these plugins and those that they require."""
    found: set[str] = set()
    rest = list(names)
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += NEEDS.get(name, ())
    return sorted(found)


def enabled(setting: str) -> list[str]:
    """Return the plugins that a value of the setting `plugins` enables, with those that they require."""
    return with_needed(_named(setting))


def explicit(settings: Settings) -> list[str]:
    """Return the plugins of the list that the user has given; without a list, those that are on."""
    if settings.plugins:
        return sorted(_named(settings.plugins))
    with_page = ("rabbitmq_management", "rabbitmq_shovel_management") if settings.management else ()
    with_metrics = ("rabbitmq_prometheus",) if settings.prometheus else ()
    return sorted((*ALWAYS_ON, *with_page, *with_metrics))


def missing(names: Iterable[str]) -> list[str]:
    """Return the plugins that this broker does not have, of these and of those that they require."""
    return [name for name in with_needed(names) if name not in BUILT_IN]


def _named(setting: str) -> set[str]:
    if setting == NO_PLUGINS:
        return set()
    return BUILT_IN if setting == ALL_PLUGINS else set(setting.replace(",", " ").split())
