"""Jobs as processes of AiiDA: `serve` is a worker of its daemon, `submit FIRST COUNT SIZE` submits some."""

from __future__ import annotations

import fcntl
import os
import sys
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROKER = os.environ["AMQP_URL"]
# A worker and its senders share a profile, whose files are here. AiiDA reads the variable when it is imported.
FOLDER = Path(f"profile-{sha256(BROKER.encode()).hexdigest()[:8]}").absolute()
FOLDER.mkdir(exist_ok=True)
os.environ["AIIDA_PATH"] = str(FOLDER)

from aiida import load_profile  # noqa: E402
from aiida.engine import ProcessSpec, WorkChain, submit  # noqa: E402
from aiida.manage import get_config, get_manager  # noqa: E402
from aiida.manage.configuration import create_profile  # noqa: E402
from aiida.orm import Int, Str  # noqa: E402

NAME = "jobs"
# It is a part of the queue's name.
UUID = "00000000000000000000000000000001"


class Job(WorkChain):  # type: ignore[misc]
    @classmethod
    def define(cls, spec: ProcessSpec) -> None:
        super().define(spec)
        spec.input("number", valid_type=Int)
        spec.input("text", valid_type=Str)
        spec.outline(cls.work)

    def work(self) -> None:
        text = self.inputs.text.value
        print("done", self.inputs.number.value, sha256(text.encode()).hexdigest()[:8], flush=True)


def make_profile() -> None:
    """Make the profile, unless there is one. A worker and a sender may start at the same time."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make_profile()


def _make_profile() -> None:
    config = get_config(create=True)
    if NAME in config.profile_names:
        return
    url = urlsplit(BROKER)
    profile = create_profile(
        config,
        name=NAME,
        email="jobs@example.com",
        storage_backend="core.sqlite_dos",
        storage_config={"filepath": str(FOLDER / "storage")},
        broker_backend="core.rabbitmq",
        broker_config={
            "broker_protocol": "amqp",
            "broker_username": url.username,
            "broker_password": url.password,
            "broker_host": url.hostname,
            "broker_port": url.port,
            "broker_virtual_host": unquote(url.path[1:]),
            "broker_parameters": {"reconnect_interval": 1},
        },
    )
    profile.uuid = UUID
    config.update_profile(profile)
    config.store()


def serve() -> None:
    manager = get_manager()
    runner = manager.create_daemon_runner()
    manager.set_runner(runner)
    print("ready", flush=True)
    runner.start()


def send(first: int, count: int, size: int) -> None:
    for number in range(first, first + count):
        submit(Job, number=Int(number), text=Str("x" * size))
        print("accepted", number, flush=True)


if __name__ == "__main__":
    verb, *numbers = sys.argv[1:]
    make_profile()
    load_profile(NAME)
    if verb == "serve":
        serve()
    else:
        send(*map(int, numbers))
