"""The image without a container engine: container/install.sh in a root file system of its own.

The system's /usr stands in for the base image's, under an overlay; Python and the packages are those that run the
tests. Namespaces do the rest: a container's broker is process 1, alone on its ports, and sees its own files only.
Linux and root are needed.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compat.waiting import wait_until

PROJECT = Path(__file__).parents[2]
CONTAINER = PROJECT / "container"
# Not a loopback address: what a client on another machine would be.
ADDRESS = "10.5.6.72"
START_S_MAX = 20.0

ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "group": "root:x:0:\n",
    "shadow": "root:*:1::::::\n",
    "gshadow": "root:*::\n",
    "hosts": "127.0.0.1 localhost\n",
}
FROM_SYSTEM = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "login.defs", "nsswitch.conf", "ssl")

# Mount the Python of the tests instead of an installation by pip. $1: the root, $2: Python's folder, $3: its packages
MOUNTS = """
set -e
mkdir -p "$1/usr" "$1/proc" "$1/packages" "$1/$2"
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1.usr,workdir=$1.work" "$1/usr"
mount --rbind /dev "$1/dev"
case $2 in /usr*) ;; *) mount --bind "$2" "$1/$2" ;; esac
mount --bind "$3" "$1/packages"
"""
# Process 1 of a container. $1: the root, $2: the volume, $3: read-only or not; then what chroot takes
FIRST_PROCESS = """
set -e
mount -t proc proc "$1/proc"
mount --bind "$2" "$1/var/lib/rabbitmq"
if [ -n "$3" ]; then mount -o remount,bind,ro "$1"; mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"; fi
"$4" -c '
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    def up(name, address):
        a = struct.pack("16sH2s4s8s", name, socket.AF_INET, b"", socket.inet_aton(address), b"")
        fcntl.ioctl(s, 0x8916, a)
        fcntl.ioctl(s, 0x8914, struct.pack("16sh22s", name, 1, b""))
    up(b"lo", "127.0.0.1")
    up(b"lo:1", "%s")
'
shift 4
exec "$@"
""".replace("%s", ADDRESS)


class CannotBuild(Exception):
    """This machine does not let us have namespaces and mounts."""


class Image:
    """A root file system, and the namespace in which its mounts are; `close` gives both up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "image"
        self.count = 0
        self._holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "infinity"])
        wait_until(lambda: Path(f"/proc/{self._holder.pid}/comm").read_text("utf-8") == "sleep\n")
        self._prepare()
        self.environment = environment_of_dockerfile()
        self.run("/opt/amqp-broker/container/install.sh")

    def _prepare(self) -> None:
        """Do the steps of the Dockerfile that precede install.sh."""
        mounted = self.inside(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(self.folder)], check=False)
        if mounted.returncode:
            raise CannotBuild(mounted.stderr)
        root = self.seen(self.root)
        for name in ("etc", "dev", "tmp", "root", "var/lib", "var/log", "opt/amqp-broker"):
            (root / name).mkdir(parents=True)
        for name in ("image.usr", "image.work"):
            self.seen(self.folder / name).mkdir()
        (root / "tmp").chmod(0o1777)
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / name).symlink_to(f"usr/{name}")
        for name, text in ACCOUNTS.items():
            (root / "etc" / name).write_text(text, "utf-8")
        for name in FROM_SYSTEM:
            subprocess.run(["cp", "-a", f"/etc/{name}", root / "etc"], stderr=subprocess.DEVNULL, check=False)
        places = [str(self.root), sys.base_prefix, sysconfig.get_path("purelib")]
        mounted = self.inside(["sh", "-c", MOUNTS, "sh", *places], check=False)
        if mounted.returncode:
            raise CannotBuild(mounted.stderr)
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        python = f"{sys.base_prefix}/bin/python3"
        self.run(python, "-m", "venv", "--without-pip", "/opt/amqp-broker")
        packages = next((root / "opt/amqp-broker/lib").glob("python3.*")) / "site-packages"
        shutil.copytree(PROJECT / "amqp_broker", packages / "amqp_broker")
        (packages / "packages.pth").write_text("/packages\n", "utf-8")
        program = root / "opt/amqp-broker/bin/amqp-broker"
        program.write_text("#!/opt/amqp-broker/bin/python\nfrom amqp_broker.cli.main import main\nmain()\n", "utf-8")
        program.chmod(0o755)
        self.run("/opt/amqp-broker/bin/python", "-m", "compileall", "-q", "/opt/amqp-broker/lib")
        shutil.copytree(CONTAINER, root / "opt/amqp-broker/container")

    def seen(self, path: Path) -> Path:
        """Return the path by which processes outside the namespace can open a file inside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def inside(self, command: Sequence[str], check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run something in the namespace, not in the root."""
        return subprocess.run([*self.entering(), *command], capture_output=True, encoding="utf-8", check=check)

    def entering(self) -> list[str]:
        return ["nsenter", "--target", str(self._holder.pid), "--mount"]

    def run(self, *command: str) -> str:
        """RUN of a Dockerfile: as root, in the image. Returns the output."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        done = self.inside(["chroot", str(self.root), "env", "-i", *settings, *command], check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def container(self, *command: str, **options: Any) -> Container:
        """`docker run IMAGE command`."""
        self.count += 1
        return Container(self, f"container{self.count}", command, **options)

    def volume(self, name: str) -> Path:
        """A named volume, which begins with what the image has in its place."""
        path = self.folder / f"volume-{name}"
        if not self.seen(path).exists():
            self.inside(["cp", "-a", str(self.root / "var/lib/rabbitmq"), str(path)])
        return path

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Container:
    """One container: files are put into its root before `start`, or it is entered with `with`."""

    def __init__(
        self,
        image: Image,
        name: str,
        command: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        volume: str = "",
        user: str = "",
        is_read_only: bool = False,
    ) -> None:
        self.image = image
        self.environment = {**image.environment, "HOSTNAME": name, **(environment or {})}
        self.user = user
        self.root = image.folder / name
        self.output = ""
        source = image.root
        parts = ["etc", "opt/rabbitmq", "plugins", "var", "tmp", "root", "docker-entrypoint-init.d"]
        links = ["bin", "lib", "lib64", "sbin"]
        image.seen(self.root).mkdir()
        # Mounts are not copied.
        for part in parts + links:
            place = self.root / part
            image.seen(place.parent).mkdir(exist_ok=True)
            image.inside(["cp", "-a", "-x", str(source / part), str(place)])
        binds = {str(source / part): part for part in ("usr", "packages", "dev", "opt/amqp-broker")}
        if not sys.base_prefix.startswith("/usr"):
            binds[sys.base_prefix] = sys.base_prefix.lstrip("/")
        image.inside(["mount", "--bind", str(self.root), str(self.root)])
        for original, target in binds.items():
            image.seen(self.root / target).mkdir(parents=True, exist_ok=True)
            image.inside(["mount", "--rbind", original, str(self.root / target)])
        image.seen(self.root / "proc").mkdir()
        for path, text in (files or {}).items():
            self.write(path, text)
        first = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "bash", "-c", FIRST_PROCESS, "bash"]
        volume_folder = str(image.volume(volume or name))
        first += [str(self.root), volume_folder, "true" if is_read_only else "", sys.executable]
        self.log = image.seen(image.folder) / f"{name}.log"
        self.errors = image.seen(image.folder) / f"{name}.errors"
        with self.log.open("w") as log, self.errors.open("w") as errors:
            self._process = subprocess.Popen(
                [*image.entering(), *first, *self.command(user, "docker-entrypoint.sh", *command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
            )

    def write(self, path: str, text: str) -> None:
        """Mount a file into the container."""
        file = self.image.seen(self.root / path.lstrip("/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        file.chmod(0o755 if text.startswith("#!") else 0o644)

    def command(self, user: str, *words: str) -> list[str]:
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        number, _, group = user.partition(":")
        who = [f"--userspec={number}:{group or 0}", "--groups="] if user else []
        return ["chroot", *who, str(self.root), "env", "-i", *settings, *words]

    def __enter__(self) -> Container:
        return self.until("Server startup complete")

    def __exit__(self, *error: object) -> None:
        self.kill()

    def text(self) -> str:
        """`docker logs`: both streams, one after the other."""
        return self.log.read_text("utf-8") + self.errors.read_text("utf-8")

    def until(self, text: str) -> Container:
        """Wait until the log has this."""
        deadline = time.monotonic() + START_S_MAX
        while text not in self.text():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"ended with {self._process.poll()}:\n{self.text()}")
            time.sleep(0.01)
        return self

    @property
    def first_process(self) -> int:
        """Process 1, by its number outside."""
        parent = self._process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        wait_until(lambda: children.read_text("utf-8").strip())
        return int(children.read_text("utf-8").split()[0])

    def execute(self, *command: str, user: str = "") -> subprocess.CompletedProcess[str]:
        """`docker exec`."""
        namespaces = ["nsenter", "--target", str(self.first_process), "--mount", "--pid", "--net"]
        return subprocess.run(
            [*namespaces, *self.command(user or self.user, *command)],
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )

    def python(self, script: str) -> str:
        """Run a client beside the container, from an address that is not loopback. Returns what it prints."""
        return self.python_in(self.first_process, script)

    def python_in(self, process: int, script: str) -> str:
        """Run a client in the network of a process. Returns what it prints."""
        done = subprocess.run(
            ["nsenter", "--target", str(process), "--net", sys.executable, "-c", script],
            cwd=PROJECT,
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr + self.text()
        return done.stdout

    def wait(self) -> int:
        """The exit code, when it has ended."""
        return self._process.wait(START_S_MAX)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """`docker stop`. Returns the exit code, and the seconds it took."""
        began = time.monotonic()
        subprocess.run(["kill", f"-{int(number)}", str(self.first_process)], check=True)
        return self.wait(), time.monotonic() - began

    def kill(self) -> None:
        """End process 1, and so all: `--kill-child` ends nothing that has taken another user meanwhile."""
        if self._process.poll() is None:
            subprocess.run(["kill", "-KILL", str(self.first_process)], check=False)
        self._process.wait()


def environment_of_dockerfile() -> dict[str, str]:
    """The variables that the Dockerfile sets."""
    text = (PROJECT / "Dockerfile").read_text("utf-8")
    block = re.search(r"^ENV (.*?[^\\])$", text, re.DOTALL | re.MULTILINE)
    assert block
    found = dict(pair.split("=", 1) for pair in block[1].replace("\\\n", "").split())
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**found, "PATH": found["PATH"].replace("$PATH", system)}
