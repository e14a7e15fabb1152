"""An area of the suite: a configuration, and its scenarios."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Scenarios of one module, played at a broker with these lines of rabbitmq.conf."""

    name: str
    settings: tuple[str, ...] = ()
    # The first version of RabbitMQ that knows the settings: major and minor number.
    since: tuple[int, int] = (3, 0)

    def is_known_by(self, version: str) -> bool:
        """Return whether a version, for example `4.3`, knows the settings."""
        major, minor = version.split(".")
        return (int(major), int(minor)) >= self.since
