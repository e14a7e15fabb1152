"""Settings: one declaration each, which gives the default, the flag, the environment names and the help.

`Config.load` takes the command line's values before the environment's, and those before the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import platformdirs

from amqp_broker.compat import DEFAULT, PROFILES, Profile

_UNITS: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1024 ** (power + 1) for power, letter in enumerate("kmgt") for unit in (letter, f"{letter}ib")},
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
}
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)((?:[kmgt](?:i?b)?)?)", re.IGNORECASE)


class ConfigError(ValueError):
    """A setting has a value that it cannot have; the text names the setting and the value."""


def setting(default: Any, help_text: str, *, env: tuple[str, ...] = (), key: str = "", flag: bool = True) -> Any:
    """Declare a setting.

    Its environment name is AMQP_BROKER_ and the field's name; `env` are further names, `key` is what rabbitmq.conf
    calls it.
    """
    return field(default=default, metadata={"help": help_text, "env": env, "key": key, "flag": flag})


@dataclass(frozen=True)
class Config:
    """All settings of a broker."""

    host: str = setting(
        "localhost", "Address or name to listen on; '::' is every interface.", env=("RABBITMQ_NODE_IP_ADDRESS",)
    )
    port: int = setting(
        5672, "Port for AMQP; 0 takes a free one.", env=("RABBITMQ_NODE_PORT",), key="listeners.tcp.default"
    )
    management: bool = setting(True, "Serve RabbitMQ's HTTP API and the web page.")
    management_port: int | None = setting(
        None,
        "Port of the HTTP API and the web page: 15672 if none is given, or a free one if AMQP takes one.",
        key="management.tcp.port",
    )
    prometheus: bool = setting(True, "Serve metrics for Prometheus.")
    prometheus_port: int | None = setting(
        None,
        "Port of the metrics: 15692 if none is given, or a free one if AMQP takes one.",
        key="prometheus.tcp.port",
    )
    control: bool = setting(True, "Let this user's command line command the broker.")
    ports_file: str = setting("", "Write the ports as JSON to this file when all of them accept.")
    node_name: str = setting(
        "", "Name of the node, rabbit@ and the machine's name if none is given.", env=("RABBITMQ_NODENAME",)
    )
    data_dir: str = setting(
        "", "Folder of the store; without it the platform's folder for data.", env=("RABBITMQ_MNESIA_DIR",)
    )
    ephemeral: bool = setting(False, "Keep everything in memory only: nothing is there after a restart.")
    definitions: str = setting(
        "", "Import these definitions before the first client is let in.", key="load_definitions"
    )
    vm_memory_high_watermark: str = setting(
        "",
        "Memory beyond which publishers are blocked: a share of all there is (0.6), or as much as 2GB.",
        env=("RABBITMQ_VM_MEMORY_HIGH_WATERMARK",),
        key="vm_memory_high_watermark.relative",
    )
    disk_free_limit: str = setting(
        "50MB",
        "Block publishers while the store's disk has less than this free; 1.5 is that share of the memory.",
        key="disk_free_limit.absolute",
    )
    store_bytes_max: str = setting("0", "Block publishers while the store has more than this, as 20GB; 0 is no limit.")
    log_level: str = setting("info", "debug, info, warning or error.", key="log.console.level")
    remote_guest: bool = setting(False, "Let the user guest in from other machines, too.")
    default_user: str = setting(
        "guest", "Name of the first user.", env=("RABBITMQ_DEFAULT_USER",), key="default_user", flag=False
    )
    default_pass: str = setting(
        "guest", "Password of the first user.", env=("RABBITMQ_DEFAULT_PASS",), key="default_pass", flag=False
    )
    default_vhost: str = setting(
        "/", "Name of the first vhost.", env=("RABBITMQ_DEFAULT_VHOST",), key="default_vhost", flag=False
    )
    compat: str = setting(DEFAULT, f"The version of RabbitMQ to imitate: {', '.join(PROFILES)}.")
    auth_mechanisms: str = setting(
        "", "SASL mechanisms, if not those of that version; RABBIT-CR-DEMO is there, too.", flag=False
    )
    channel_max: int = setting(2047, "Channels that a connection may open.", key="channel_max", flag=False)
    frame_max: int = setting(131072, "Largest frame, in octets.", key="frame_max", flag=False)
    heartbeat_s: int = setting(60, "Heartbeat that the broker proposes, in seconds.", key="heartbeat", flag=False)
    handshake_timeout_ms: int = setting(
        10_000, "How long a client may take until connection.open.", key="handshake_timeout", flag=False
    )
    message_bytes_max: int = setting(
        0, "Largest message body, in octets, if not that version's.", key="max_message_size", flag=False
    )
    consumer_timeout_ms: int = setting(
        1_800_000,
        "How long a consumer may take to settle a message; 0 is for ever.",
        key="consumer_timeout",
        flag=False,
    )
    connection_max: int | None = setting(None, "Connections that the broker takes.", key="connection_max", flag=False)
    exchange_max: int | None = setting(
        None,
        "Exchanges in all vhosts together, those that are there from the start among them.",
        key="cluster_exchange_limit",
        flag=False,
    )

    @classmethod
    def load(cls, given: Mapping[str, Any], environment: Mapping[str, str]) -> Config:
        """Settings from the command line (None: not given) and the environment. Raises ConfigError."""
        values: dict[str, Any] = {}
        for declared in fields(cls):
            if given.get(declared.name) is not None:
                values[declared.name] = given[declared.name]
                continue
            for name in (f"AMQP_BROKER_{declared.name.upper()}", *declared.metadata["env"]):
                if name in environment:
                    values[declared.name] = _parse(name, environment[name], str(declared.type))
                    break
        config = cls(**values)
        config.check()
        return config

    def port_of(self, default: int, given: int | None) -> int:
        """The port of a listener beside AMQP's: as given, else its default, or any that is free if AMQP takes such."""
        if given is not None:
            return given
        return default if self.port else 0

    @property
    def profile(self) -> Profile:
        """The version of RabbitMQ that is imitated."""
        return PROFILES[self.compat]

    @property
    def store_path(self) -> Path | None:
        """The folder of the store; None if there is none."""
        if self.ephemeral:
            return None
        return Path(self.data_dir) if self.data_dir else platformdirs.user_data_path("amqp-broker", appauthor=False)

    def resolved(self) -> Config:
        """These settings, with the values of that version where none is given."""
        return replace(
            self,
            auth_mechanisms=self.auth_mechanisms or self.profile.auth_mechanisms,
            message_bytes_max=self.message_bytes_max or self.profile.message_bytes_max,
            vm_memory_high_watermark=self.vm_memory_high_watermark or self.profile.memory_watermark,
        )

    def check(self) -> None:
        """Raise ConfigError for a value out of range."""
        for name in ("port", "management_port", "prometheus_port"):
            port = getattr(self, name)
            if port is not None and not 0 <= port <= 65535:
                raise ConfigError(f"{name.replace('_', ' ')} {port} is not between 0 and 65535")
        if self.compat not in PROFILES:
            raise ConfigError(f"compat '{self.compat}' is none of {', '.join(PROFILES)}")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ConfigError(f"log level '{self.log_level}' is none of debug, info, warning, error")
        for name in ("vm_memory_high_watermark", "disk_free_limit", "store_bytes_max"):
            text = getattr(self, name)
            if text and _AMOUNT.fullmatch(text) is None:
                raise ConfigError(f"{name} is '{text}', which is not an amount like 2GB")


def octets(text: str, whole: int) -> int:
    """How much a setting says: octets, with a unit or not; a number up to 1, or with a point, is a share of `whole`.

    Units are RabbitMQ's: kB is 1000, KiB and K are 1024 (rabbit_resource_monitor_misc.erl).
    """
    found = _AMOUNT.fullmatch(text)
    assert found is not None, text
    number, unit = found.groups()
    if not unit and ("." in number or int(number) <= 1):
        return round(float(number) * whole)
    return round(float(number) * _UNITS[unit.lower()])


def _parse(name: str, text: str, kind: str) -> Any:
    if kind.startswith("int"):
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{name} is '{text}', which is not a whole number") from None
    if kind == "bool":
        if text.lower() not in ("true", "false", "1", "0", "yes", "no", ""):
            raise ConfigError(f"{name} is '{text}', which is neither true nor false")
        return text.lower() in ("true", "1", "yes")
    return text
