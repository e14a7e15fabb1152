from compat.matrix.rows import Row

ROWS = (
    Row(
        name="php-amqplib",
        language="PHP",
        version="3.5.3",  # Debian's
        command=("php", "play.php"),
        install=(("php", "-r", "require 'PhpAmqpLib/autoload.php';"),),
        programs=(("php", "php-cli"), ("/usr/share/php/PhpAmqpLib/autoload.php", "php-amqplib")),
    ),
)
