from compat.applications.application import Application

APPLICATION = Application(
    name="flink",
    language="Java",
    version="1.20.5",
    command=(
        # A program of a test needs no large heap and soon ends, and its machine has other work.
        *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        # A cluster that is killed leaves its files behind.
        "-Djava.io.tmpdir=target",
        *("-cp", "target/classes:target/lib/*", "jobs.Jobs"),
    ),
    install=(("mvn", "--quiet", "--batch-mode", "process-classes"),),
    programs=(("mvn", "maven"), ("javac", "openjdk-17-jdk-headless")),
    refusals=(r"(ACCESS_REFUSED|NOT_ALLOWED|PRECONDITION_FAILED) - [^()\n]+",),
)
