from __future__ import annotations

import json
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

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


def with_tool(broker: RabbitMQ | AmqpBroker, folder: Path) -> Mapping[str, str]:
    """Write `rabbitmqctl` into a folder, and return the environment in which it is found."""
    folder.mkdir(exist_ok=True)
    own = [sys.executable, "-m", "amqp_broker", "ctl"]
    command = broker.entered("rabbitmqctl") if isinstance(broker, RabbitMQ) else own
    tool = folder / "rabbitmqctl"
    tool.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
    tool.chmod(0o755)
    found = broker.environment()
    return {**found, "PATH": f"{folder}:{found['PATH']}", "ANSIBLE_COLLECTIONS_PATH": str(CACHE)}


def play(ansible: Path, broker: RabbitMQ | AmqpBroker, book: str, folder: Path) -> Results:
    """Play a playbook, and return what it did."""
    environment = {
        **with_tool(broker, folder / f"tools-{broker.name}"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_PYTHON_INTERPRETER": str(ansible / "python"),
        "LC_ALL": "C.UTF-8",
    }
    given = {"node": node(broker), "port": broker.port, "http_port": str(broker.management_port)}
    command = [str(ansible / "ansible-playbook"), "-i", "localhost,", "-e", json.dumps(given), str(HERE / book)]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    [found] = json.loads(done.stdout)["plays"]
    return [(task["task"]["name"], outcome(task["hosts"]["localhost"])) for task in found["tasks"]]


def outcome(result: Mapping[str, Any]) -> str:
    if result.get("failed"):
        return f"failed: {result.get('msg')} {result.get('stderr', '')}"
    return "skipped" if result.get("skipped") else "changed" if result.get("changed") else "ok"


@pytest.mark.parametrize("minor", PROFILES)
def test_playbooks_do_what_they_do_at_rabbitmq(
    ansible: Path, rabbitmq: RabbitMQ, own: AmqpBroker, tmp_path: Path, minor: str
) -> None:
    theirs, ours = (
        [
            play(ansible, broker, "present.yml", tmp_path),
            play(ansible, broker, "present.yml", tmp_path),
            play(ansible, broker, "absent.yml", tmp_path),
            play(ansible, broker, "absent.yml", tmp_path),
        ]
        for broker in (rabbitmq, own)
    )
    assert ours == theirs
    assert [task for task in ours[0] if task[1] not in ("changed", "ok")] == []
