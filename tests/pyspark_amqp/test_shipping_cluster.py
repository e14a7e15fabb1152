"""Jobs on a Spark of another host, whose workers are without this package.

The hosts are network namespaces with a cable in between, each with its own loopback. They share this machine's files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow
import pyspark
import pytest

from compat.waiting import wait_until
from pyspark_amqp.java import NoJava, ensure_java
from tests.hosts import Host, RemoteBroker, connected
from tests.pyspark_amqp.jobs import WRITE_AND_DRAIN, declare_queues

ROOT = Path(__file__).parents[2]
DRIVER, CLUSTER = "10.213.77.1", "10.213.77.2"
MASTER = f"spark://{CLUSTER}:7077"


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with connected(DRIVER, CLUSTER) as pair:
        yield pair


@pytest.fixture(scope="module")
def workers_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a Python that has pyarrow, and neither this package nor pika."""
    home = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = next(home.glob("lib/python*/site-packages"))
    for found in Path(pyarrow.__file__).parent.parent.glob("pyarrow*"):
        (packages / found.name).symlink_to(found)
    return str(home / "bin" / "python")


@pytest.fixture(scope="module")
def cluster(hosts: tuple[Host, Host], workers_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run a master and a worker on the second host; return the folder of their logs."""
    try:
        ensure_java(MASTER)
    except NoJava as lacking:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(lacking))
    folder = tmp_path_factory.mktemp("cluster")
    home = str(Path(pyspark.__file__).parent)
    deploy = "org.apache.spark.deploy"
    variables = {
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": CLUSTER,
        "SPARK_DAEMON_MEMORY": "256m",
        "PATH": f"{Path(workers_python).parent}{os.pathsep}{os.environ['PATH']}",
    }
    # The driver's Python is not on this host.
    hiding = 'mount -t tmpfs none "$0" && exec "$@"'
    program = ("sh", "-c", hiding, str(Path(sys.executable).parent), f"{home}/bin/spark-class")
    master = [*program, f"{deploy}.master.Master", "--host", CLUSTER, "--port", "7077", "--webui-port", "0"]
    worker = [*program, f"{deploy}.worker.Worker", "--cores", "2", "--memory", "768m", "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(hosts[1].running(master, folder / "master", variables))
        wait_until(lambda: "I have been elected leader" in (folder / "master").read_text("utf-8"), 120)
        words = [*worker, "--work-dir", str(folder / "work"), MASTER]
        stack.enter_context(hosts[1].running(words, folder / "worker", variables))
        wait_until(lambda: "Successfully registered with master" in (folder / "worker").read_text("utf-8"), 120)
        yield folder


START = """
import json, sys
from pyspark_amqp.java import ensure_java
master, url, folder = sys.argv[1:]
ensure_java(master)
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
builder = builder.config("spark.executor.memory", "512m").config("spark.driver.memory", "512m")
builder = builder.config("spark.sql.shuffle.partitions", "2")
spark = builder.config("spark.log.level", "ERROR").getOrCreate()
"""
READ = """
stream = {"queueType": "stream"}
batch = spark.read.format("amqp").options(url=url, queue="stream", **stream).load()
told = {
    "batch": batch.selectExpr("sum(int(string(body)))").first()[0],
    "browse": spark.read.format("amqp").options(url=url, queue="classic").load().count(),
    "stream": drain("stream", startingOffsets="earliest", **stream),
    "classic": drain("classic"),
}
print(json.dumps(told))
spark.stop()
"""


def test_jobs_run_on_workers_of_another_host_without_this_package(
    hosts: tuple[Host, Host], cluster: Path, workers_python: str, tmp_path: Path
) -> None:
    lacking = "import importlib.util as u; print(u.find_spec('pyspark_amqp'), u.find_spec('pika'))"
    found = subprocess.run([workers_python, "-c", lacking], cwd=tmp_path, capture_output=True, check=True)
    assert found.stdout == b"None None\n"
    broker = RemoteBroker(tmp_path / "broker", hosts[0])
    program = tmp_path / "jobs.py"
    program.write_text(START + WRITE_AND_DRAIN + READ, "utf-8")
    with broker.running():
        declare_queues(broker)
        words = [sys.executable, str(program), MASTER, broker.url, str(tmp_path)]
        plain = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        done = subprocess.run(
            hosts[0].command(*words),
            cwd=tmp_path,
            env={**plain, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            timeout=400,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout) == {"batch": 4950, "browse": 100, "stream": 4950, "classic": 4950}
