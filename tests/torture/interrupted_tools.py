"""Kill the tools of the store at random moments. Nothing may be lost.

python -m tests.torture --rounds 0 --tool-rounds 100 --seed 1
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import lmdb

from amqp_broker.store.environment import DATA_FILE, FORMAT_KEY, NUMBER, TABLES, Environment, StoreError, Tables
from amqp_broker.store.seal import unseal
from amqp_broker.store.verify import verify
from tests.store.stores import fill

MESSAGES = 3000
BODY_BYTES = 4
# Opens a store as a broker does, which converts it.
CONVERT = (
    "import sys; from pathlib import Path; from amqp_broker.store.environment import Environment\n"
    "Environment(Path(sys.argv[1]))"
)
# A whole broker that starts on a store, and ends.
START = """
import asyncio, sys
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings

async def run():
    server = Server(Settings(data_dir=sys.argv[1], ephemeral=False, port=0, management=False))
    await server.start()
    await server.stop()

asyncio.run(run())
"""

Contents: TypeAlias = dict[str, dict[bytes, bytes]]


@dataclass
class Interrupted:
    """The result: the number of kills before a tool had ended, and sentences about losses."""

    kills: int
    errors: list[str]


def interrupt(tool: str, folder: Path, rounds: int, seed: int) -> Interrupted:
    """Kill a tool or the start of a broker a number of times; the folder must be new."""
    dice = random.Random(f"{seed} {tool}")
    original, used, copy = folder / "original", folder / "used", folder / "copy"
    folder.mkdir()
    fill(original, MESSAGES, BODY_BYTES)
    if tool in CONVERTING:
        strip_checksums(original)
    whole = contents(original)
    result = Interrupted(0, [])
    shutil.copytree(original, used)
    began = time.monotonic()
    subprocess.run(command(tool, used, copy), check=True, capture_output=True)
    duration_s = time.monotonic() - began
    for number in range(rounds):
        for each in (used, copy):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(original, used)
        process = subprocess.Popen(command(tool, used, copy), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(dice.random() * duration_s)
        result.kills += process.poll() is None
        process.kill()
        process.communicate()
        result.errors += [f"{tool}, round {number}: {error}" for error in losses(tool, used, copy, whole)]
    return result


def command(tool: str, folder: Path, copy: Path) -> list[str]:
    if tool in CONVERTING:
        return [sys.executable, "-c", CONVERTING[tool], str(folder)]
    to = ["--to", str(copy)] if tool == "backup" else []
    return [sys.executable, "-m", "amqp_broker", "store", tool, "--data-dir", str(folder), *to]


def losses(tool: str, folder: Path, copy: Path, whole: Contents) -> list[str]:
    """Return sentences about what a killed tool has lost, or left in the way of its next run."""
    errors = []
    if (copy / DATA_FILE).exists():
        errors += problems(copy, whole, "the backup")
    if lasting(contents(folder), whole) != lasting(whole, whole):
        errors.append("the store has changed")
    # A backup that became whole before the kill is not replaced.
    if not (copy / DATA_FILE).exists():
        again = subprocess.run(command(tool, folder, copy), capture_output=True, encoding="utf-8", check=False)
        if again.returncode:
            errors.append(f"the next run fails: {again.stderr}")
    return [*errors, *problems(folder, whole, "the store")]


def problems(folder: Path, whole: Contents, name: str) -> list[str]:
    try:
        found = verify(folder).problems
    except StoreError as error:
        return [f"{name}: {error}"]
    is_same = lasting(contents(folder), whole) == lasting(whole, whole)
    return [f"{name}: {problem}" for problem in found] or ([] if is_same else [f"{name} differs"])


def lasting(found: Contents, whole: Contents) -> Contents:
    """Return definitions and messages. A broker that starts deletes the garbage of `whole`, so it is left out."""
    deleted = {key[: NUMBER.size] for key in whole["garbage"]}
    messages = {key: value for key, value in found["messages"].items() if key[: NUMBER.size] not in deleted}
    return {"definitions": found["definitions"], "messages": messages}


def contents(folder: Path) -> Contents:
    """Return the records of a store, by table and key. They have no checksums; the number of the format is left out."""
    found: Contents = {}
    with lmdb.open(str(folder), max_dbs=len(TABLES), readonly=True, lock=False) as store:
        tables = {name: store.open_db(name.encode(), create=False) for name in TABLES}
        with store.begin() as txn:
            read = unsealed if txn.get(FORMAT_KEY, db=tables["meta"]) != NUMBER.pack(1) else as_it_is
            for name, table in tables.items():
                with txn.cursor(table) as cursor:
                    found[name] = {key: read(key, value) for key, value in cursor if key != FORMAT_KEY}
    return found


def unsealed(key: bytes, value: bytes) -> bytes:
    return bytes(unseal(key, value))


def as_it_is(key: bytes, value: bytes) -> bytes:
    return value


def strip_checksums(folder: Path) -> None:
    """Turn a store without streams into one of format 1."""
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        strip_tables(txn, environment.tables)
    environment.close()


def strip_tables(txn: lmdb.Transaction, tables: Tables) -> None:
    for table in tables.values():
        with txn.cursor(table) as cursor:
            rows = list(cursor)
        for key, value in rows:
            txn.put(key, NUMBER.pack(1) if key == FORMAT_KEY else value[:-8], db=table)


# Programs that convert a store of format 1.
CONVERTING = {"convert": CONVERT, "start": START}
TOOLS: tuple[str, ...] = ("compact", "backup", "verify", *CONVERTING)
