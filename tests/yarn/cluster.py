"""A ResourceManager and a NodeManager. Their default file system is that of the machine, which the hosts share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

from compat.waiting import wait_until
from tests.hosts import Host

ROOT = Path(__file__).parents[2]
JARS = Path(pyspark.__file__).parent / "jars"
SERVER = "org.apache.hadoop.yarn.server"
JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "--add-opens", "java.base/java.lang=ALL-UNNAMED")
LOGGING = """
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


def servers() -> Path:
    """Return the folder of YARN's JARs, in the version of Spark's client. Maven fetches missing ones."""
    client = next(JARS.glob("hadoop-client-api-*.jar"))
    version = client.stem.removeprefix("hadoop-client-api-")
    folder = ROOT / ".cache" / f"yarn-{version}"
    maven = ("mvn", "--quiet", "--batch-mode", "--file", str(Path(__file__).with_name("pom.xml")))
    goal = "dependency:copy-dependencies"
    words = (*maven, goal, "-DincludeScope=runtime", f"-Dhadoop.version={version}", f"-DoutputDirectory={folder}")
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def configure(folder: Path, host: Host) -> Path:
    """Write the configuration of servers and clients; return its folder."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")}
    yarn = {
        "yarn.resourcemanager.hostname": host.address,
        # The default needs a file of its own.
        "yarn.resourcemanager.scheduler.class": f"{SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.hostname": host.address,
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.vmem-check-enabled": "false",
        # A disk that is nearly full makes a node unusable otherwise.
        "yarn.nodemanager.disk-health-checker.enable": "false",
    }
    for name, given in (("core-site.xml", core), ("yarn-site.xml", yarn)):
        properties = [
            f"<property><name>{key}</name><value>{escape(text)}</value></property>" for key, text in given.items()
        ]
        (conf / name).write_text(f"<configuration>{''.join(properties)}</configuration>", "utf-8")
    (conf / "log4j.properties").write_text(LOGGING, "utf-8")
    return conf


@contextmanager
def running(host: Host, folder: Path, hidden: Path) -> Iterator[Path]:
    """Run both servers on the host, where one folder is hidden. Yield the folder of the configuration."""
    conf = configure(folder, host)
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    hiding = ("sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden))
    command = [*hiding, java, *JAVA, "-cp", f"{conf}:{servers()}/*"]
    log = folder / "resourcemanager.log"
    with (
        host.running([*command, f"{SERVER}.resourcemanager.ResourceManager"], log, {}),
        host.running([*command, f"{SERVER}.nodemanager.NodeManager"], folder / "nodemanager.log", {}),
    ):
        wait_until(lambda: "registered with capability" in log.read_text("utf-8"), 120)
        yield conf
