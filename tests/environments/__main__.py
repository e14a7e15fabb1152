"""Run the tests in environments: python3 -m tests.environments --list | NAME....

Only Python and git are needed: each run installs its packages into a fresh clone of HEAD.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.environments.environments_table import ENVIRONMENTS, Environment

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BY_NAME = {environment.name: environment for environment in ENVIRONMENTS}
# Lines of the log that are shown of a failed run.
LINES_MAX = 100
# Time for the programs beside the tests to start.
START_TIMEOUT_S = 10.0


class Unavailable(Exception):
    """This machine cannot provide the environment."""


class NotPrepared(Exception):
    """The environment could not be set up, or has no effect; the text says why."""


@dataclass
class Stage:
    """The clones of one environment in a folder, and the environment's commands for them."""

    environment: Environment
    folder: Path

    def filled(self, command: Sequence[str]) -> list[str]:
        """Return the command with the folders filled in."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amqp-broker-environments"
        names = {"{folder}": self.folder, "{here}": HERE, "{cache}": cache, "{python}": sys.executable}
        words = list(command)
        for name, path in names.items():
            words = [word.replace(name, str(path)) for word in words]
        return words

    def wrapped(self, command: Sequence[str]) -> list[str]:
        return [*self.filled(self.environment.wrap), *command]

    @property
    def variables(self) -> dict[str, str]:
        names, values = self.environment.variables.keys(), self.filled(tuple(self.environment.variables.values()))
        # Not those of a make that runs this program.
        inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
        return {**inherited, **dict(zip(names, values, strict=True))}

    def clones(self) -> list[Path]:
        return [self.folder / f"clone{number}" for number in range(self.environment.copies)]

    def prepare(self) -> None:
        """Set up the environment and clone the repository. Raise Unavailable or NotPrepared."""
        if self.environment.needs_root and os.geteuid() != 0:
            raise Unavailable("it needs root")
        for program, package in self.environment.programs.items():
            if not shutil.which(program) and (call([str(ROOT / ".ci" / "apt"), package]) or not shutil.which(program)):
                raise Unavailable(f"there is no {program}")
        for command in self.environment.prepare:
            if error := call(self.filled(command)):
                raise Unavailable(error)
        for clone in self.clones():
            if error := call(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone)]):
                raise NotPrepared(error)
        if error := call(self.wrapped(["true"]), cwd=self.clones()[0]):
            raise Unavailable(error)

    def probe(self) -> None:
        """Check that the environment has its effect, while its neighbours run. Raise NotPrepared."""
        if not self.environment.probe:
            return
        (script,) = self.filled((self.environment.probe,))
        until_s = time.monotonic() + (START_TIMEOUT_S if self.environment.beside else 0)
        while error := call(self.wrapped(["sh", "-ec", script]), self.clones()[0], self.variables):
            if time.monotonic() > until_s:
                raise NotPrepared(f"it has no effect on this machine: {error}")
            time.sleep(0.1)

    def make(self) -> list[str]:
        """Return the options of make that the environment adds to a target."""
        if not self.environment.python:
            return []
        return [f"PYTHON={interpreter(self.environment.python)}"]

    @contextlib.contextmanager
    def neighbours(self) -> Iterator[None]:
        """Run the programs beside the tests until the tests have ended."""
        # The kernel ends them with this process, however it ends.
        commands = [["setpriv", "--pdeathsig", "KILL", *self.filled(command)] for command in self.environment.beside]
        processes = [subprocess.Popen(command) for command in commands]
        try:
            yield
            for command, process in zip(commands, processes, strict=True):
                if process.poll() is not None:
                    raise NotPrepared(f"{shlex.join(command)} ended before the tests")
        finally:
            for process in processes:
                process.kill()
                process.wait()


def call(command: Sequence[str], cwd: Path = ROOT, variables: Mapping[str, str] | None = None) -> str:
    """Run a command; return the reason of a failure, or an empty string."""
    try:
        done = subprocess.run(
            command, cwd=cwd, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
    except OSError as error:
        return f"cannot run {command[0]}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{shlex.join(command)} ended with {done.returncode}"


def interpreter(version: str) -> Path:
    """Return a Python of this version from PATH or pyenv. Raise Unavailable."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for path in (shutil.which(name), *sorted(pyenv.glob(f"{version}.*/bin/{name}"))):
        # A shim of pyenv may run another version.
        check = f"import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"
        if path and not call([str(path), "-c", check]):
            return Path(path)
    raise Unavailable(f"there is no {name}")


def closing_line(log: Path) -> str:
    """Return the last line of pytest's summary, or the last line at all."""
    lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()] or [""]
    return next((line for line in reversed(lines) if " passed" in line or " failed" in line), lines[-1]).strip("= ")


def play(environment: Environment, target: Sequence[str], seed: int) -> bool:
    """Run the target in the environment, print the result, and return whether it passed.

    Failed tests leave the folder with their log.
    """
    folder = Path(tempfile.mkdtemp(prefix="env-"))
    # Other users must be able to enter it.
    folder.chmod(0o755)
    stage = Stage(environment, folder)
    try:
        stage.prepare()
        options = stage.make()
        if environment.is_offline:
            # The tests of Go fetch its modules.
            for clone in stage.clones():
                subprocess.run(["make", "--silent", "test", "ARGS=compat/go", *options], cwd=clone, check=False)
        with stage.neighbours():
            stage.probe()
            for run in range(environment.runs):
                shuffle = [f"SEED={seed + run}"] if environment.is_shuffled else []
                if not play_once(stage, ["make", *target, *options, *shuffle]):
                    return False
    except Unavailable as reason:
        print(f"{environment.name}: not available on this machine: {reason}", flush=True)
        is_passed = not os.environ.get("CI")
    except (NotPrepared, OSError) as reason:
        print(f"{environment.name}: cannot be prepared: {reason}", flush=True)
        is_passed = False
    else:
        is_passed = True
    shutil.rmtree(folder)
    return is_passed


def play_once(stage: Stage, command: Sequence[str]) -> bool:
    """Run the command in all clones at once; return whether all of them passed."""
    name = stage.environment.name
    started = time.monotonic()
    processes = []
    for clone in stage.clones():
        with clone.with_suffix(".log").open("wb") as output:
            processes.append(
                subprocess.Popen(
                    stage.wrapped(command),
                    cwd=clone,
                    env=stage.variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
    codes = [process.wait() for process in processes]
    minutes = (time.monotonic() - started) / 60
    for clone, code in zip(stage.clones(), codes, strict=True):
        log = clone.with_suffix(".log")
        if code:
            print("\n".join(log.read_text("utf-8", errors="replace").splitlines()[-LINES_MAX:]))
            print(f"{name}: {shlex.join(command)} ended with {code}; see {log}", flush=True)
        print(f"{name}: {minutes:.1f} minutes: {closing_line(log)}", flush=True)
    return not any(codes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.environments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="environments to run")
    parser.add_argument("--list", action="store_true", help="list the environments")
    parser.add_argument("--make", default="test", metavar="TARGET", help="target and variables instead of `make test`")
    parser.add_argument("--seed", type=int, default=None, help="seed of the order of tests")
    options = parser.parse_args()
    if options.list:
        width = max(map(len, BY_NAME))
        print("\n".join(f"{environment.name:{width}} {environment.changes}" for environment in ENVIRONMENTS))
        return 0
    if unknown := [name for name in options.names if name not in BY_NAME]:
        parser.error(f"there is no environment {', '.join(unknown)}; see --list")
    chosen = [BY_NAME[name] for name in options.names]
    if not chosen:
        parser.error("name an environment, or use --list")
    if call(["git", "diff", "--quiet", "HEAD"]):
        print("The clones do not contain uncommitted changes.", file=sys.stderr)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"Running: {', '.join(environment.name for environment in chosen)}", flush=True)
    passed = [play(environment, shlex.split(options.make), seed) for environment in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
