from compat.matrix.rows import Row

ROWS = (
    Row(
        name="anyevent-rabbitmq",
        language="Perl",
        version="1.22",  # Debian's
        command=("perl", "play.pl"),
        install=(("perl", "-MAnyEvent::RabbitMQ=1.22", "-MAnyEvent::TLS", "-e", "1"),),
        programs=(
            ("perl", "perl"),
            ("AnyEvent::RabbitMQ", "libanyevent-rabbitmq-perl"),
            ("Net::SSLeay", "libnet-ssleay-perl"),  # AnyEvent has TLS only with it
        ),
    ),
)
