"""The examples of README.md and docs/ are run, page by page, from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from compat.oracles.rabbitmq import RabbitMQ
from tests.docs.blocks import PAGES, Block, blocks_of, fits, steps_of
from tests.docs.file_readers import consume
from tests.docs.terminal import Terminal

# Blocks that cannot be run, by page; a comment before each has this reason.
NOT_RUN = {
    "README.md": ["builds .venv and takes the well-known ports", "compiles for minutes"],
    "docs/assistants.md": ["installs packages"],
    "docs/container.md": ["needs Docker"],
    "docs/executable.md": ["compiles for minutes", "compiles for minutes"],
    "docs/pipeline.md": ["installs packages", "needs an object store"],
    "docs/quick-start.md": [
        "builds .venv and takes the well-known ports",
        "installs packages",
        "the console of these tests is no terminal",
    ],
    "docs/spark-cluster.md": ["needs a Kubernetes cluster", "needs a YARN cluster"],
    "docs/spark-recipes.md": [
        "downloads a JAR",
        "downloads a JAR",
        "installs packages",
        "downloads JARs and needs Spark 4.2.0",
        "downloads JARs and needs Spark 4.2.0",
        "needs the packages of Spark Connect, and minutes",
    ],
    "docs/spark-speed.md": ["it changes the installed pyspark"],
    "docs/spark.md": ["installs packages"],
}

# The machine in pages that stands for a real RabbitMQ.
RABBITMQ_MACHINE = "rabbit.example.com"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def run_block(terminal: Terminal, block: Block) -> None:
    """Run or write a block as a reader of the page would."""
    if block.reason or block.language == "text":
        return
    if block.file and (block.language == "python" or "wrong" in block.file):
        terminal.write(block.file, block.text)
    elif block.language in ("console", "sh"):
        run_commands(terminal, block)
    elif block.language == "python":
        terminal.write("snippet.py", block.text)
        code, printed = terminal.run("python snippet.py")
        assert code == 0, f"{block.place}: {printed}"
    else:
        consume(terminal, block)


def run_commands(terminal: Terminal, block: Block) -> None:
    steps = steps_of(block)
    code, position = 0, 0
    while position < len(steps):
        command, shown = steps[position]
        code, printed = terminal.run(command)
        position += 1
        assert shown is None or fits(printed, shown), f"{block.place}: {command!r} printed:\n{printed}"
        # A page marks a failing command by asking for its exit code.
        if position < len(steps) and steps[position].command == "echo $?":
            assert steps[position].output == f"{code}\n", f"{block.place}: {command!r} ended with {code}:\n{printed}"
            position += 1
        else:
            assert code == 0, f"{block.place}: {command!r} ended with {code}:\n{printed}"


def a_rabbitmq(folder: Path) -> RabbitMQ:
    """Provide the RabbitMQ of the pages: with an administrator, a queue and a message."""
    folder.mkdir()
    rabbitmq = RabbitMQ(folder, plugins=("rabbitmq_management",))
    rabbitmq.start()
    rabbitmq.run("rabbitmqctl", "add_user", "admin", "secret")
    rabbitmq.run("rabbitmqctl", "set_user_tags", "admin", "administrator")
    rabbitmq.run("rabbitmqctl", "set_permissions", "admin", ".*", ".*", ".*")
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("orders", durable=True)
        channel.basic_publish("", "orders", b"hello", pika.BasicProperties(delivery_mode=2))
    return rabbitmq


def needs(text: str, page: Path) -> bool:
    """Return whether a block that is run contains the text."""
    return any(text in block.text and not block.reason for block in blocks_of(page))


def marks(page: Path) -> list[pytest.MarkDecorator]:
    # curl may be missing.
    return [pytest.mark.verify] if needs(RABBITMQ_MACHINE, page) or needs("curl ", page) else []


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=marks(page)) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_examples_of_a_page_work(page: Path, terminal: Terminal, tmp_path: Path) -> None:
    blocks = list(blocks_of(page))
    rabbitmq: RabbitMQ | None = None
    if needs(RABBITMQ_MACHINE, page):
        if not RabbitMQ.is_installed():
            pytest.skip("needs RabbitMQ")
        rabbitmq = a_rabbitmq(tmp_path / "rabbitmq")
        terminal.names.machines = {
            f"{RABBITMQ_MACHINE}:15672": f"127.0.0.1:{rabbitmq.management_port}",
            f"{RABBITMQ_MACHINE}:5672": f"127.0.0.1:{rabbitmq.port}",
        }
    try:
        for block in blocks:
            run_block(terminal, block)
    finally:
        if rabbitmq is not None:
            rabbitmq.stop()


def test_every_block_that_is_not_run_is_listed() -> None:
    found: dict[str, list[str]] = {}
    for block in (block for page in PAGES for block in blocks_of(page)):
        if block.reason:
            found.setdefault(block.page, []).append(block.reason)
    assert found == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_command_is_in_a_block_of_text(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language, f"{block.place}: a block must say what it is"
        if block.language == "text":
            commands = ("$ ", "amqp-broker ", "make ", "docker ", "curl ", "pip ")
            assert not [line for line in block.text.splitlines() if line.startswith(commands)], block.place
