from compat.matrix.rows import Row

ROWS = (
    Row(
        name="amqp091-go",
        language="Go",
        version="1.16.0",
        install=(("go", "build", "-o", "player", "./play"),),
        command=("./player",),
    ),
)
