"""The oracles: versions of RabbitMQ, and where this machine has them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from compat.oracles.debian_root import Unavailable, create

SYSTEM = Path("/")
# Folders of the package, below a root.
BIN = "usr/lib/rabbitmq/bin"
LIB = "usr/lib/rabbitmq/lib"


@dataclass(frozen=True)
class Oracle:
    """A minor version of RabbitMQ, and the release of Debian that packages it."""

    name: str
    release: str
    # Lines of rabbitmq.conf that undo changes of the package.
    settings: tuple[str, ...] = ()
    # It is asked about durable queues wherever any kind will do.
    declares_durable: bool = False

    @property
    def cached_root(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "amqp-broker-oracles" / self.release

    @property
    def version(self) -> str:
        """The exact version that is installed, for example `3.10.8`, or an empty string."""
        root = self.installed()
        return version_in(root) if root else ""

    def installed(self) -> Path | None:
        """Return the root folder that has this version already: the system, or one in the cache."""
        # Only root can enter another root.
        roots = (SYSTEM, self.cached_root) if os.geteuid() == 0 else (SYSTEM,)
        return next((root for root in roots if self._is_in(root)), None)

    def have(self) -> Path:
        """Return the root folder with this version, installed if it is missing. Raise Unavailable with a sentence."""
        if root := self.installed():
            return root
        try:
            create(self.release, self.cached_root, ("rabbitmq-server",))
        except Unavailable as reason:
            raise Unavailable(f"RabbitMQ {self.name} cannot be had: {reason}") from None
        if not self._is_in(self.cached_root):
            found = version_in(self.cached_root)
            raise Unavailable(f"RabbitMQ {self.name} cannot be had: Debian {self.release} has RabbitMQ {found}")
        return self.cached_root

    def _is_in(self, root: Path) -> bool:
        return version_in(root).startswith(f"{self.name}.")


def version_in(root: Path) -> str:
    """Return the exact version in a root folder, or an empty string."""
    folders = sorted((root / LIB).glob("rabbitmq_server-*"))
    return folders[-1].name.removeprefix("rabbitmq_server-") if folders else ""


# By minor version. Debian's package of 4.3 permits transient queues; RabbitMQ's own refuses them. 4.0 is asked the same
# as 4.3, so that one play of amqp-broker compares with both.
ORACLES = {
    oracle.name: oracle
    for oracle in (
        Oracle("3.10", "bookworm"),
        Oracle("4.0", "trixie", declares_durable=True),
        Oracle("4.3", "sid", ("deprecated_features.permit.transient_nonexcl_queues = false",), declares_durable=True),
    )
}
OLDEST = ORACLES["3.10"]
