"""A job that Spark runs on YARN, in cluster mode, with a packed environment of Python.

ResourceManager and NodeManager are Hadoop's own, on another host than broker and client. The machine's Python there is
without this package. The hosts share this machine's files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pika
import pyarrow
import pyspark
import pytest

import pyspark_amqp
from pyspark_amqp.java import NoJava, ensure_java
from tests.hosts import Host, RemoteBroker, connected
from tests.pyspark_amqp.jobs import WRITE_AND_DRAIN, declare_queues
from tests.yarn.cluster import running

SPARK = Path(pyspark.__file__).parent


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[Host, Host]]:
    with connected("10.213.79.1", "10.213.79.2") as pair:
        yield pair


@pytest.fixture(scope="module")
def cluster(hosts: tuple[Host, Host], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run YARN on the second host; return the folder of its configuration."""
    try:
        ensure_java("yarn")
        if shutil.which("mvn") is None:
            raise NoJava("Maven is not installed")
    except NoJava as lacking:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(lacking))
    with running(hosts[1], tmp_path_factory.mktemp("yarn"), Path(sys.executable).parent) as conf:
        yield conf


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of an environment with pyarrow, pika and this package, and without pyspark."""
    folder = tmp_path_factory.mktemp("environment")
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    site = next(home.glob("lib/python*/site-packages"))
    arrow = [path for path in Path(pyarrow.__file__).parent.parent.glob("pyarrow*") if path.is_dir()]
    for path in (*arrow, Path(pika.__file__).parent, Path(pyspark_amqp.__file__).parent):
        shutil.copytree(path, site / path.name)
    archive = folder / "environment.tar.gz"
    subprocess.run(["tar", "-C", str(home), "-I", "gzip -1", "-cf", str(archive), "."], check=True)
    return archive


START = """
import json, sys
from pyspark.sql import SparkSession
url, folder = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
"""
READ = """
told = {
    "stream": drain("stream", startingOffsets="earliest", queueType="stream"),
    "classic": drain("classic"),
    "pythons": spark.sparkContext.parallelize([0], 1).map(lambda row: sys.prefix.split("/")[-1]).collect(),
}
with open(f"{folder}/told.json", "w") as file:
    json.dump(told, file)
spark.stop()
"""


def submit(environment: Path, program: Path, *words: str) -> list[str]:
    """Return the command that runs a program in the cluster."""
    conf = {
        # Otherwise all JARs of Spark are copied.
        "spark.yarn.jars": f"local:{SPARK}/jars/*",
        "spark.yarn.stagingDir": f"file://{program.parent}/staging",
        "spark.yarn.maxAppAttempts": "1",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    options = [word for name, text in conf.items() for word in ("--conf", f"{name}={text}")]
    command = [f"{SPARK}/bin/spark-submit", "--master", "yarn", "--deploy-mode", "cluster"]
    return [*command, "--archives", f"{environment}#environment", *options, str(program), *words]


def test_jobs_run_on_yarn_with_a_packed_environment(
    hosts: tuple[Host, Host], cluster: Path, environment: Path, tmp_path: Path
) -> None:
    program = tmp_path / "jobs.py"
    program.write_text(START + WRITE_AND_DRAIN + READ, "utf-8")
    broker = RemoteBroker(tmp_path / "broker", hosts[0])
    with broker.running():
        declare_queues(broker)
        plain = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        variables = {"HADOOP_CONF_DIR": str(cluster), "PYSPARK_PYTHON": "./environment/bin/python"}
        done = subprocess.run(
            hosts[0].command(*submit(environment, program, broker.url, str(tmp_path))),
            env={**plain, **variables},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    logs = "".join(path.read_text("utf-8", "replace")[-2000:] for path in cluster.parent.glob("logs/*/*/std*"))
    assert done.returncode == 0, done.stderr[-4000:] + logs
    told = json.loads((tmp_path / "told.json").read_text("utf-8"))
    assert told == {"stream": 4950, "classic": 4950, "pythons": ["environment"]}
