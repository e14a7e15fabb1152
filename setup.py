"""The description on the package page, and the compiled build. All else is in pyproject.toml.

The description is README.md, whose links lead to the repository.

    AMQP_BROKER_COMPILED=1 pip wheel --no-deps .

compiles the modules of COMPILED by mypyc. The sources are the same, and are in the wheel, too. All of COMPILED become
one library, so that they call each other directly and know each other's attributes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path(__file__).parent
IS_COMPILED = os.environ.get("AMQP_BROKER_COMPILED") == "1"
# gcc's level. Tests take 1, which compiles faster.
OPTIMIZATION = os.environ.get("AMQP_BROKER_OPTIMIZATION", "3")
BUILD = f".cache/build-compiled/{sys.implementation.cache_tag}-{OPTIMIZATION}"
# The release of mypyc that the constraints name: another one may compile otherwise. Sources refer to types of pamqp.
NEEDED = ["mypy==2.4.1", "pamqp>=4.0"]

# Folders and modules of amqp_broker. A message should not leave them between its socket and its consumer's.
COMPILED = {
    "amqp": "content frames header_sorter message property_list property_shapes stamped_message",
    "broker/clients": "channel_counts client_channel client_connection awaiting_login peer",
    "broker/counting": "counters history",
    "broker/durability": "chunk damaged journal overflow_buffer paged_buffer stream_log",
    "broker/observe": "message_trace record recorder",
    "broker/queues": (
        "arrival_backlog arrival_times backlog backlog_queue before_death classic consumer consumer_rotation "
        "deduplicated expiry giving_up length_limit memory_buffer octets priority priority_backlog queue queue_trace "
        "quorum quorum_backlog quorum_order reply return_counts statistics stream unused_expiry"
    ),
    "broker/routing": "destinations route route_cache vhost_counts",
    "broker/scheduling": "portions timers",
    "server": "clock committing flush_cycle transport",
    "session": "session",
    "session/channel": (
        "acks channel channel_consumer channel_limit confirms delivery_deadlines leaving_consumers returning "
        "succession unacked"
    ),
    "session/connection": "blocking commit_gate heartbeats",
    "session/methods": "basic_publish consuming transactions",
    "session/wire": "dispatch outbox reader",
    "store": "chunks codec journal seal writer",
}
# Modules of these folders that are left out, with the reason; and folders of which no module is compiled.
LEFT_OUT = {
    "amqp/connection_states": "mypyc does not compile enums with values of their own",
    "amqp/deduplication_key": "it reads headers, values of any type",
    "amqp/errors": "mypyc refuses `code, name = …` in a class, and nothing is won where an error is raised",
    "amqp/fields": "mypyc has no subclasses of int and float",
    "amqp/methods": "its classes derive from pamqp's",
    "amqp/nested": "it works on values of any type, of which the compiler knows nothing",
    "broker/counting/incident": "incidents are rare",
    "broker/queues/delayed_retries": "mypyc does not compile a dataclass whose slots are made",
    "broker/queues/kept_dead_letters": "mypyc does not compile a dataclass whose slots are made",
    "broker/routing/dead_letter": "mypyc does not compile a dataclass whose slots are made",
    "broker/routing/dead_lettering": "what it calls is not compiled",
    "broker/routing/refused_letters": "few messages pass it",
    "broker/queues/dead_letter_reasons": "it has constants alone",
    "broker/queues/leaving_reasons": "it has constants alone",
    "broker/queues/arguments": "it runs once for a declaration",
    "broker/queues/ownership": "it runs once for a declaration",
    "broker/queues/queue_settings": "it runs once for a declaration",
    "broker/queues/refused_publishers": "it has weak references, which compiled objects do not bear",
    "broker/queues/sizes": "it runs when statistics are read",
    "broker/queues/types": "it runs once for a declaration",
    "session/channel/remote_checks": "few sessions have a user of a remote backend",
    "session/connection/ack_timeouts": "it runs once a minute",
    "session/connection/connection_log": "it runs a few times for a connection",
    "session/connection/handshake": "it runs a few times for a connection",
    "session/methods/channel_methods": "it runs a few times for a channel",
    "session/methods/topology_methods": "it runs once for a declaration",
    "broker": "vhosts, users, and what else does not see each message",
    "broker/admin": "it does not see messages",
    "broker/exchanges": "they are dataclasses with abstract bases; a cached route does not call them",
    "broker/lab": "it works while a fault rule or advice is on",
    "broker/observe": "it works while somebody looks",
    "broker/operations": "they are rare",
    "server": "they see connections, not messages",
    "store": "LMDB and the disk take the time of all else",
}


def description() -> str:
    """Return README.md without links that lead nowhere outside of the repository."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (FOLDER / "README.md").read_text("utf-8")
    repository = project["urls"]["Repository"]
    # A picture is a file, not the page about it.
    readme = re.sub(r"(!\[[^]]*\])\((?!https?:)", rf"\1({repository}/raw/main/", readme)
    return re.sub(r"\]\((?!https?:|#)", f"]({repository}/blob/main/", readme)


def compiled_files() -> list[str]:
    return [f"amqp_broker/{folder}/{name}.py" for folder, names in COMPILED.items() for name in names.split()]


class CompiledDistribution(Distribution):
    """Has extensions, which are known only when they are built: before, mypyc may not be installed."""

    def has_ext_modules(self) -> bool:
        return True


class Compile(build_ext):
    """Translates the modules to C and compiles the files side by side."""

    def finalize_options(self) -> None:
        if self.inplace or getattr(self, "editable_mode", False):
            sys.exit("Compiled modules beside the sources would hide them: an editable install is never compiled.")
        from mypyc.build import mypycify

        # The types of all other packages change nothing, and these need not be installed.
        options = ["--config-file=", "--ignore-missing-imports"]
        self.distribution.ext_modules = mypycify(
            [*options, *compiled_files()],
            opt_level=OPTIMIZATION,
            debug_level="0",
            multi_file=True,
            group_name="amqp_broker",
            target_dir=f"{BUILD}/c",
        )
        if sys.platform != "win32":
            # Names that no other library refers to take a sixth of the library, and a detour for each call.
            for extension in self.distribution.ext_modules:
                extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden"]
        super().finalize_options()

    def build_extensions(self) -> None:
        compile_all = self.compiler.compile

        # mypyc leaves files as they are that have not changed. This file has options of the compiler.
        headers_changed = max(path.stat().st_mtime for path in [Path(__file__), *Path(BUILD).rglob("*.h")])

        def compile_one(source: str, **options: Any) -> str:
            (made,) = self.compiler.object_filenames([source], output_dir=options["output_dir"])
            changed = max(headers_changed, Path(source).stat().st_mtime)
            if not Path(made).exists() or Path(made).stat().st_mtime < changed:
                compile_all([source], **options)
            return str(made)

        def compile_each(sources: Sequence[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return list(pool.map(lambda source: compile_one(source, **options), sources))

        self.compiler.compile = compile_each
        super().build_extensions()


def compiled_build() -> dict[str, Any]:
    """Remove what an earlier build left, and return arguments of setup()."""
    for old in Path(BUILD).glob("lib*"):
        shutil.rmtree(old)
    return {
        "distclass": CompiledDistribution,
        "cmdclass": {"build_ext": Compile},
        "options": {"build": {"build_base": BUILD}},
        "setup_requires": NEEDED,
    }


if __name__ == "__main__":
    setup(
        long_description=description(),
        long_description_content_type="text/markdown",
        **(compiled_build() if IS_COMPILED else {}),
    )
