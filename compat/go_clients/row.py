"""Clients of Go: one module with a program each. The program of amqp091-go also plays with the library it came from."""

from compat.matrix.rows import Row


def _row(name: str, version: str, program: str, folder: str, *options: str) -> Row:
    install = (("go", "build", "-mod=mod", *options, "-o", program, f"./{folder}"),)
    return Row(name, "Go", version, (f"./{program}",), install)


ROWS = (
    _row("amqp091-go", "1.16.0", "play_amqp091", "amqp091"),
    _row("streadway", "1.1.0", "play_streadway", "amqp091", "-modfile=streadway.mod", "-tags=streadway"),
    _row("watermill-amqp", "3.0.0", "play_watermill", "watermill"),
    _row("rabbit-hole", "3.1.0", "play_rabbit_hole", "rabbit_hole"),
)
