"""Clients of Go beside amqp091-go, which has its folder: one module with a program each."""

from compat.matrix.rows import Row


def _row(name: str, folder: str, version: str) -> Row:
    install = (("go", "build", "-mod=mod", "-o", f"play_{folder}", f"./{folder}"),)
    return Row(name, "Go", version, (f"./play_{folder}",), install)


ROWS = (
    _row("streadway", "streadway", "1.1.0"),
    _row("watermill-amqp", "watermill", "3.0.0"),
    _row("rabbit-hole", "rabbit_hole", "3.1.0"),
)
