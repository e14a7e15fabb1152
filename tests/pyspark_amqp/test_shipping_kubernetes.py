"""A job that Spark runs on Kubernetes, in cluster mode, with executors without this package.

API server, scheduler, controllers and kubectl are Kubernetes itself, and Spark talks to them as everywhere. The kubelet
and all below it are `tests/kubernetes/node.py`, which runs pods as processes. So images are mounts, not archives, and
their entrypoint is `tests/kubernetes/spark_entrypoint.sh`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pika
import pyarrow
import pyspark
import pytest

import pyspark_amqp
from compat.oracles.debian_root import Unavailable
from compat.waiting import wait_until
from pyspark_amqp.java import NoJava, ensure_java
from tests.hosts import RemoteBroker
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.hosts import Hosts, hosts
from tests.kubernetes.programs import programs
from tests.pyspark_amqp.jobs import WRITE_AND_DRAIN, declare_queues

# The first run on a machine builds Kubernetes: minutes of processor time, beside other tests.
pytestmark = pytest.mark.timeout(3600)

ROOT = Path(__file__).parents[2]
SPARK = str(Path(pyspark.__file__).parent)
# The mounts of an image: Spark with a folder for its configuration, and a Python. The machine's folders for variable
# data are hidden, and so is the Python that runs the tests.
PREPARE = """
mount -t tmpfs tmpfs /opt
mkdir -p /opt/upper /opt/scratch /opt/spark /opt/python
mount -t overlay overlay -o lowerdir={spark},upperdir=/opt/upper,workdir=/opt/scratch /opt/spark
mkdir -p /opt/spark/conf
mount --bind {python} /opt/python
{packages}
for folder in /mnt /run /var {hidden}; do mount -t tmpfs tmpfs "$folder"; done
ln -s /run /var/run
"""


def image(folder: Path, packages: list[Path]) -> dict[str, object]:
    """Return an image with Spark, and a Python with these packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    mounts = []
    for package in packages:
        (site / package.name).mkdir()
        mounts.append(f"mount --bind {package} /opt/python/{site.relative_to(folder)}/{package.name}")
    prepare = PREPARE.format(spark=SPARK, python=folder, packages="\n".join(mounts), hidden=Path(sys.executable).parent)
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}
    path = f"/opt/python/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    return {
        "prepare": prepare,
        "entrypoint": ["bash", str(ROOT / "tests" / "kubernetes" / "spark_entrypoint.sh")],
        "environment": {"SPARK_HOME": "/opt/spark", "PATH": path, "HOME": "/opt", **java},
        "folder": "/opt",
    }


@pytest.fixture(scope="module")
def network() -> Iterator[Hosts]:
    with ExitStack() as stack:
        try:
            pair = stack.enter_context(hosts())
        except (OSError, subprocess.CalledProcessError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"network namespaces need root and the program ip: {error}")
        yield pair


@pytest.fixture(scope="module")
def cluster(network: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Run Kubernetes with one node, and the images `driver` and `executor`."""
    try:
        ensure_java("k8s://")
        built = programs()
    except (NoJava, Unavailable) as lacking:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(lacking))
    folder = tmp_path_factory.mktemp("kubernetes")
    arrow = sorted(path for path in Path(pyarrow.__file__).parent.parent.glob("pyarrow*") if path.is_dir())
    ours = [Path(pika.__file__).parent, Path(pyspark_amqp.__file__).parent]
    images = {"driver": image(folder / "driver", [*arrow, *ours]), "executor": image(folder / "executor", arrow)}
    (folder / "images.json").write_text(json.dumps(images), "utf-8")
    with ControlPlane(built, network.cluster, folder).running() as control:
        node = [sys.executable, "-m", "tests.kubernetes.node", str(control.kubeconfig)]
        words = [*node, str(folder / "images.json"), str(folder / "pods")]
        with network.cluster.running(words, folder / "node.log", {"PYTHONPATH": str(ROOT)}):
            wait_until(lambda: " Ready " in control.kubectl("get", "nodes"), 120)
            yield control


START = """
import json, sys
from pyspark.sql import SparkSession
url, folder = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()

def lacking(part):
    import importlib.util
    return [name for name in ("pyspark_amqp", "pika") if importlib.util.find_spec(name) is None]

told = {"lacking": spark.sparkContext.parallelize([0], 1).mapPartitions(lacking).collect()}
"""
READ = """
told["stream"] = drain("stream", startingOffsets="earliest", queueType="stream")
told["classic"] = drain("classic")
with open(f"{folder}/told.json", "w") as file:
    json.dump(told, file)
spark.stop()
"""


def submit(cluster: ControlPlane, data: Path, *words: str) -> list[str]:
    """Return the command that runs a program of the folder in the cluster, where the folder is /mnt/data."""
    conf = {
        "spark.kubernetes.driver.container.image": "driver",
        "spark.kubernetes.executor.container.image": "executor",
        "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    for kind in ("driver", "executor"):
        volume = f"spark.kubernetes.{kind}.volumes.hostPath.data"
        conf |= {f"{volume}.mount.path": "/mnt/data", f"{volume}.options.path": str(data)}
    options = [word for name, text in conf.items() for word in ("--conf", f"{name}={text}")]
    command = [f"{SPARK}/bin/spark-submit", "--master", f"k8s://{cluster.url}", "--deploy-mode", "cluster"]
    return [*command, "--name", "jobs", *options, "local:///mnt/data/jobs.py", *words]


def test_jobs_run_in_pods_whose_executors_are_without_this_package(
    network: Hosts, cluster: ControlPlane, tmp_path: Path
) -> None:
    cluster.kubectl("create", "serviceaccount", "spark")
    role = ("--clusterrole=edit", "--serviceaccount=default:spark")
    cluster.kubectl("create", "rolebinding", "spark", *role)
    data = tmp_path / "data"
    data.mkdir()
    (data / "jobs.py").write_text(START + WRITE_AND_DRAIN + READ, "utf-8")
    broker = RemoteBroker(tmp_path / "broker", network.outside)
    with broker.running():
        declare_queues(broker)
        plain = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
        done = subprocess.run(
            network.outside.command(*submit(cluster, data, broker.url, "/mnt/data")),
            env={**plain, "KUBECONFIG": str(cluster.kubeconfig)},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    logs = "".join(path.read_text("utf-8", "replace")[-4000:] for path in (cluster.folder / "pods").glob("*/log"))
    result = data / "told.json"
    assert (done.returncode, result.exists()) == (0, True), done.stderr[-4000:] + logs
    told = json.loads(result.read_text("utf-8"))
    assert told == {"lacking": ["pyspark_amqp", "pika"], "stream": 4950, "classic": 4950}
