from collections.abc import Sequence

from compat.matrix.rows import Row

INSTALL = (("mvn", "--quiet", "--batch-mode", "process-classes"),)
PROGRAMS = (("mvn", "maven"), ("javac", "openjdk-17-jdk-headless"))


def command(main: str, *options: str) -> Sequence[str]:
    # A client of a test needs no large heap and soon ends, and its machine has other work.
    frugal = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return ("java", *frugal, *options, "-cp", "target/classes:target/lib/*", f"matrix.{main}")


ROWS = (
    Row("amqp-client", "Java", "5.37.0", command("JavaClient"), INSTALL, PROGRAMS),
    Row("amqp-client (NIO)", "Java", "5.37.0", command("JavaClient", "-Dtransport=nio"), INSTALL, PROGRAMS),
    Row("amqp-client (Netty)", "Java", "5.37.0", command("JavaClient", "-Dtransport=netty"), INSTALL, PROGRAMS),
    Row("spring-rabbit", "Java", "4.1.0", command("SpringClient"), INSTALL, PROGRAMS),
    Row("reactor-rabbitmq", "Java", "1.5.6", command("ReactorClient"), INSTALL, PROGRAMS),
)
