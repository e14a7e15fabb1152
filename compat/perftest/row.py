import sys

from compat.matrix.rows import Row

ROWS = (
    Row(
        "perf-test",
        "Java",
        "2.22.1",
        command=(sys.executable, "play.py"),
        install=(("mvn", "--quiet", "--batch-mode", "process-classes"),),
        programs=(("mvn", "maven"), ("javac", "openjdk-17-jdk-headless")),
        timeout_s=120.0,
    ),
)
