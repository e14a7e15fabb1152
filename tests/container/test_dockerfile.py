"""The Dockerfile builds with an engine: buildah, whose isolation by chroot needs no kernel features.

The base image is Debian with Python, made here: no registry of images is needed. test_image.py tests the rest of the
image's behaviour without an engine, in seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from compat.oracles.debian_root import Unavailable, create
from compat.waiting import wait_until
from tests.container.image import PROJECT

RELEASE = "trixie"
# Docker's image of Python has its headers, too.
PACKAGES = ("ca-certificates", "libpython3-dev", "python3", "python3-venv")
BASE = "docker.io/library/python:3.12-slim"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where pip finds packages on this machine, and the certificates for that.
PIP_FILE = Path("/etc/pip.conf")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
SIZE_MB_MAX = 85
CONFIG = "heartbeat = 17\n"
DEFINITIONS = {
    "vhosts": [{"name": "/"}],
    "users": [{"name": "ann", "password": "secret", "tags": ["administrator"]}],
    "queues": [{"name": "orders", "vhost": "/", "durable": True, "arguments": {}}],
}


class Engine:
    """buildah with storage of its own, and a network namespace in which its containers run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._network = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && exec sleep infinity"])
        wait_until(lambda: Path(f"/proc/{self._network.pid}/comm").read_text("utf-8") == "sleep\n")

    def command(self, *words: str | Path) -> list[str]:
        storage = ("--root", self.folder / "root", "--runroot", self.folder / "run", "--storage-driver", "vfs")
        return [str(word) for word in ("buildah", *storage, *words)]

    def run(self, *words: str | Path) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def inside(self, *words: str | Path) -> list[str]:
        """Return a command of the engine in the network of the containers."""
        return ["nsenter", "--target", str(self._network.pid), "--net", *self.command(*words)]

    def make_base(self, root: Path) -> None:
        """Store a root folder as the base image."""
        container = self.run("from", "scratch")
        self.run("copy", "--quiet", container, root, "/")
        self.run("run", "--isolation", "chroot", container, "--", "ln", "-s", "python3", "/usr/bin/python")
        # As in Docker's image of Python.
        pattern = ("/usr/lib", "-name", "*.pyc", "-delete")
        self.run("run", "--isolation", "chroot", container, "--", "find", *pattern)
        self.run("config", "--env", f"PATH={PATH}", container)
        self.run("commit", "--quiet", container, BASE)
        self.run("rm", container)

    def build(self) -> str:
        """Build the Dockerfile and return the name of the image."""
        files = [*([PIP_FILE] if PIP_FILE.exists() else [])]
        options = [f"--volume={path}:{path}:ro" for path in files]
        certificates = os.environ.get("SSL_CERT_FILE", CERTIFICATES)
        options.append(f"--volume={certificates}:{CERTIFICATES}:ro")
        # The compiler takes half of the time otherwise.
        options.append("--build-arg=AMQP_BROKER_OPTIMIZATION=0")
        self.run("bud", "--isolation=chroot", "--format=docker", "--pull-never", *options, "--tag=broker", PROJECT)
        return "broker"

    def close(self) -> None:
        self._network.kill()
        self._network.wait()
        self.run("rm", "--all")


class Container:
    """A container of the image, run by the image's own entrypoint and command."""

    def __init__(self, engine: Engine, image: str, files: dict[str, str], folder: Path) -> None:
        self.engine = engine
        self.id = engine.run("from", "--pull-never", image)
        self.config: dict[str, Any] = json.loads(engine.run("inspect", self.id))["Docker"]["config"]
        self._options = ["--isolation", "chroot"]
        for target, text in files.items():
            file = folder / target.strip("/").replace("/", "-")
            file.write_text(text, "utf-8")
            self._options.append(f"--volume={file}:{target}:ro")
        self.log = folder / "log"

    def __enter__(self) -> Container:
        start = [*self.config["Entrypoint"], *self.config["Cmd"]]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                self.engine.inside("run", *self._options, self.id, "--", *start),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: "Server startup complete" in self.log.read_text("utf-8") or self._process.poll() is not None)
        assert self._process.poll() is None, self.log.read_text("utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        # This isolation has no process 1 to stop.
        self.execute(["rabbitmqctl", "stop"])
        self._process.wait(20)

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, as `docker exec` does."""
        return subprocess.run(
            self.engine.inside("run", *self._options, self.id, "--", *command),
            capture_output=True,
            encoding="utf-8",
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def output(self, *command: str) -> str:
        done = self.execute(command)
        assert done.returncode == 0, done.stdout + done.stderr + self.log.read_text("utf-8")
        return done.stdout


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if os.geteuid() != 0 or shutil.which("buildah") is None:
        pytest.skip("there is no buildah, or this is not root")
    folder = tmp_path_factory.mktemp("engine")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # Other packages make another folder.
    root = cache / "amqp-broker-container" / "+".join((RELEASE, *PACKAGES))
    try:
        create(RELEASE, root, PACKAGES)
    except Unavailable as reason:
        pytest.skip(f"no base image can be made: {reason}")
    engine = Engine(folder)
    engine.make_base(root)
    yield engine
    engine.close()


@pytest.mark.timeout(900)
def test_the_dockerfile_builds_an_image_that_serves(engine: Engine, tmp_path: Path) -> None:
    files = {
        "/etc/rabbitmq/rabbitmq.conf": CONFIG,
        "/docker-entrypoint-init.d/objects.json": json.dumps(DEFINITIONS),
    }
    image = engine.build()
    with Container(engine, image, files, tmp_path) as container:
        # The server, which is not root, has not compiled them itself.
        assert container.output("find", "/usr/lib", "-path", "*/asyncio/__pycache__/base_events.*.pyc")
        # With debug symbols it would have 100.
        assert int(container.output("du", "-sm", "/opt/amqp-broker").split()[0]) < SIZE_MB_MAX
        assert container.config["Healthcheck"]["Test"] == ["CMD", "docker-healthcheck.sh"]
        container.output("docker-healthcheck.sh")
        assert "Ping succeeded" in container.output("rabbitmq-diagnostics", "ping")
        assert container.output("rabbitmqctl", "-q", "list_queues", "name") == "name\norders\n"
        assert "{heartbeat,17}" in container.output("rabbitmqctl", "environment")
        assert container.output("stat", "-c", "%U", "/var/lib/rabbitmq/amqp-broker") == "rabbitmq\n"
        overview = container.output("curl", "--silent", "--user", "ann:secret", "localhost:15672/api/overview")
        assert json.loads(overview)["product_name"] == "RabbitMQ"
        # The broker that runs is the compiled one, and the compiler is gone.
        assert json.loads(overview)["erlang_full_version"].endswith(", compiled")
        assert container.output("amqp-broker", "--version").endswith("(compiled)\n")
        assert container.execute(["sh", "-c", "command -v gcc"]).returncode != 0
