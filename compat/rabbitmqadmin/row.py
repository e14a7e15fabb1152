from compat.matrix.rows import Row

ROWS = (
    Row(
        name="rabbitmqadmin",
        language="Python",
        version="3.10.8",  # Debian's, of its RabbitMQ
        command=("bash", "play.sh"),
        programs=(("/usr/bin/rabbitmqadmin", "rabbitmq-server"),),
    ),
)
