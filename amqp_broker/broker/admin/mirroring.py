"""Keys of policies for mirrored classic queues, which RabbitMQ had before 4.0.

They are checked and kept. On a single node, they have no effect in RabbitMQ either. Source: validate_policy of
rabbit_mirror_queue_misc.erl, rabbit_mirror_queue_mode_all.erl, _exactly.erl and _nodes.erl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from amqp_broker.amqp import fields

MODE: Final = "ha-mode"
PARAMS: Final = "ha-params"
MIRROR_KEYS: Final = frozenset(
    (MODE, PARAMS, "ha-sync-mode", "ha-sync-batch-size", "ha-promote-on-shutdown", "ha-promote-on-failure")
)
# Keys with two values, in the order in which RabbitMQ checks them around the size of batches.
_PROMOTIONS: Final = ("ha-promote-on-shutdown", "ha-promote-on-failure")


def wrong_mirrors(definition: Mapping[str, Any]) -> str:
    """Return the fault of the keys for mirrors in RabbitMQ's words, "" for none."""
    if not MIRROR_KEYS & definition.keys():
        return ""
    if MODE not in definition:
        return "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
    if wrong := _wrong_params(definition, definition[MODE], definition.get(PARAMS)):
        return wrong
    if definition.get("ha-sync-mode", "manual") not in ("manual", "automatic"):
        return f'ha-sync-mode must be "manual" or "automatic", got {_term(definition, "ha-sync-mode")}'
    if not _is_positive(definition.get("ha-sync-batch-size", 1)):
        return f"ha-sync-batch-size takes an integer greater than 0, {_term(definition, 'ha-sync-batch-size')} given"
    for key in _PROMOTIONS:
        if definition.get(key, "always") not in ("always", "when-synced"):
            return f'{key} must be "always" or "when-synced", got {_term(definition, key)}'
    return ""


def _wrong_params(definition: Mapping[str, Any], mode: Any, params: Any) -> str:
    if mode == "all":
        return "" if PARAMS not in definition else 'ha-mode="all" does not take parameters'
    if mode == "exactly":
        return "" if _is_positive(params) else f'ha-mode="exactly" takes an integer, {_term(definition, PARAMS)} given'
    if mode != "nodes":
        return f"{fields.json_term(mode)} is not a valid ha-mode value"
    if not isinstance(params, list):
        return f'ha-mode="nodes" takes a list, {_term(definition, PARAMS)} given'
    if not params:
        return 'ha-mode="nodes" list must be non-empty'
    wrong = [node for node in params if not isinstance(node, str)]
    return f'ha-mode="nodes" takes a list of strings, {fields.json_term(wrong)} was not a string' if wrong else ""


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _term(definition: Mapping[str, Any], key: str) -> str:
    return fields.json_term(definition[key]) if key in definition else "none"
