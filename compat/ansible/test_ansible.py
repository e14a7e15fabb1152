from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
from tests.container.conftest import image as image
from tests.container.image import Container, Image

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".cache" / "ansible"
CORE: Final = ("ansible-core==2.18.11", "requests==2.34.2", "pika==1.4.4")
# The package has the collections of many makers. Of these, one has the modules, and one prints results as JSON.
COLLECTIONS: Final = "ansible==11.1.0"
CHOSEN: Final = ("ansible_collections/community/rabbitmq/", "ansible_collections/ansible/posix/")
PLUGINS: Final = ("rabbitmq_management", "rabbitmq_shovel_management")
PROFILES: Final = {"3.10": "3.13", "4.0": "4.0", "4.3": "4.3"}
# The tasks of a play, each with "changed", "ok", "skipped", or the reason of its failure.
Results = list[tuple[str, str]]

pytestmark = pytest.mark.verify


@pytest.fixture(scope="session")
def ansible() -> Path:
    """Provide the folder of the programs of Ansible; the collection lies beside it."""
    programs = CACHE / "venv" / "bin"
    if not all((CACHE / folder / "MANIFEST.json").exists() for folder in CHOSEN):
        subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)
        pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", *CORE], check=True)
        subprocess.run([*pip, "download", "--no-deps", "--dest", str(CACHE), COLLECTIONS], check=True)
        [wheel] = CACHE.glob("ansible-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(CACHE, [name for name in archive.namelist() if name.startswith(CHOSEN)])
        wheel.unlink()
    return programs


@pytest.fixture
def rabbitmq(tmp_path: Path, minor: str) -> Iterator[RabbitMQ]:
    broker = RabbitMQ(tmp_path / "rabbitmq", plugins=PLUGINS, oracle=ORACLES[minor])
    with broker.running():
        yield broker


@pytest.fixture
def own(tmp_path: Path, minor: str) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path / "own", profile=PROFILES[minor])
    broker.variables["RABBITMQ_NODENAME"] = node(broker)
    with broker.running():
        yield broker


def node(broker: BrokerProcess) -> str:
    return broker.environment()["RABBITMQ_NODENAME"] if isinstance(broker, RabbitMQ) else f"own{broker.port}@localhost"


class Target(NamedTuple):
    """A broker as Ansible sees it.

    `ctl` is the command of `rabbitmqctl`, and `prefix` what enters the network of the broker.
    """

    node: str
    port: int
    management_port: int
    ctl: Sequence[str]
    environment: Mapping[str, str]
    prefix: Sequence[str] = ()


def target(broker: RabbitMQ | AmqpBroker) -> Target:
    own = [sys.executable, "-m", "amqp_broker", "ctl"]
    ctl = broker.entered("rabbitmqctl") if isinstance(broker, RabbitMQ) else own
    return Target(node(broker), broker.port, broker.management_port, ctl, broker.environment())


def target_of(container: Container) -> Target:
    """Return a container whose network is entered, with the tools that are in it."""
    entered = ["nsenter", "--target", str(container.first_process), "--net"]
    ctl = [*entered, "--mount", "--pid", *container.command("", "rabbitmqctl")]
    # The container has the name of its machine.
    name = f"rabbit@{socket.gethostname().partition('.')[0]}"
    return Target(name, 5672, 15672, ctl, os.environ, entered)


def play(ansible: Path, target: Target, book: str, folder: Path) -> Results:
    """Play a playbook, and return what it did."""
    tools = folder / "tools" / target.node
    tools.mkdir(parents=True, exist_ok=True)
    (tools / "rabbitmqctl").write_text(f'#!/bin/sh\nexec {shlex.join(target.ctl)} "$@"\n', "utf-8")
    (tools / "rabbitmqctl").chmod(0o755)
    environment = {
        **target.environment,
        "PATH": f"{tools}:{target.environment['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(CACHE),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_PYTHON_INTERPRETER": str(ansible / "python"),
        "LC_ALL": "C.UTF-8",
    }
    given = {"node": target.node, "port": target.port, "http_port": str(target.management_port)}
    program = str(ansible / "ansible-playbook")
    command = [*target.prefix, program, "-i", "localhost,", "-e", json.dumps(given), str(HERE / book)]
    # It refuses a standard input that does not block.
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    [found] = json.loads(done.stdout)["plays"]
    return [(task["task"]["name"], outcome(task["hosts"]["localhost"])) for task in found["tasks"]]


def outcome(result: Mapping[str, Any]) -> str:
    if result.get("failed"):
        return f"failed: {result.get('msg')} {result.get('stderr', '')}"
    return "skipped" if result.get("skipped") else "changed" if result.get("changed") else "ok"


def play_all(ansible: Path, target: Target, folder: Path) -> list[Results]:
    """Make everything, twice, and then remove it, twice."""
    books = ("present.yml", "present.yml", "absent.yml", "absent.yml")
    return [play(ansible, target, book, folder) for book in books]


@pytest.mark.parametrize("minor", PROFILES)
def test_playbooks_do_what_they_do_at_rabbitmq(
    ansible: Path, rabbitmq: RabbitMQ, own: AmqpBroker, tmp_path: Path, minor: str
) -> None:
    theirs, ours = (play_all(ansible, target(broker), tmp_path) for broker in (rabbitmq, own))
    assert ours == theirs
    assert [task for task in ours[0] if task[1] not in ("changed", "ok")] == []


@pytest.mark.parametrize("minor", ["4.0"])
def test_playbooks_do_at_the_image_what_they_do_at_rabbitmq(
    ansible: Path, rabbitmq: RabbitMQ, image: Image, tmp_path: Path, minor: str
) -> None:
    theirs = play_all(ansible, target(rabbitmq), tmp_path)
    with image.container(environment={"AMQP_BROKER_COMPAT": minor}) as container:
        assert play_all(ansible, target_of(container), tmp_path) == theirs
