from compat.matrix.java import CLASSES, INSTALL, JAVA, PROGRAMS
from compat.matrix.rows import Row


def command(main: str, *options: str) -> tuple[str, ...]:
    return (*JAVA, *options, *CLASSES, f"matrix.{main}")


ROWS = (
    Row("amqp-client", "Java", "5.37.0", command("JavaClient"), INSTALL, PROGRAMS),
    Row("amqp-client (NIO)", "Java", "5.37.0", command("JavaClient", "-Dtransport=nio"), INSTALL, PROGRAMS),
    Row("amqp-client (Netty)", "Java", "5.37.0", command("JavaClient", "-Dtransport=netty"), INSTALL, PROGRAMS),
    Row("spring-rabbit", "Java", "4.1.0", command("SpringClient"), INSTALL, PROGRAMS),
    Row("reactor-rabbitmq", "Java", "1.5.6", command("ReactorClient"), INSTALL, PROGRAMS),
)
