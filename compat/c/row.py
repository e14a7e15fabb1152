"""rabbitmq-c and the command line programs that come with it, of the version that Debian has."""

from compat.matrix.rows import Row

VERSION = "0.11.0"

ROWS = (
    Row(
        name="librabbitmq",
        language="C",
        version=VERSION,
        command=("./play",),
        install=(("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "play", "play.c", "-lrabbitmq"),),
        programs=(("cc", "gcc"), ("/usr/include/amqp.h", "librabbitmq-dev")),
    ),
    Row(
        name="amqp-tools",
        language="C",
        version=VERSION,
        command=("bash", "play_tools.sh"),
        programs=(("amqp-publish", "amqp-tools"),),
    ),
)
