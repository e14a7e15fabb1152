"""RabbitMQ's own Erlang client, which its plugins use. Debian has it in the package of the server."""

from compat.matrix.rows import Row

VERSION = "3.10.8"
PLUGINS = f"/usr/lib/rabbitmq/lib/rabbitmq_server-{VERSION}/plugins"
# Erlang starts sooner than with all plugins in its path.
APPLICATIONS = (
    f"amqp_client-{VERSION}",
    f"rabbit_common-{VERSION}",
    "credentials_obfuscation-3.1.0",
    "jsx-3.1.0",
    "recon-2.5.2",
)
PATHS = tuple(f"{PLUGINS}/{application}/ebin" for application in APPLICATIONS)

ROWS = (
    Row(
        name="amqp_client",
        language="Erlang",
        version=VERSION,
        command=("erl", "-noshell", "-pa", *PATHS, "-s", "play", "main", "-extra"),
        install=(("env", f"ERL_LIBS={PLUGINS}", "erlc", "-Werror", "play.erl"),),
        programs=(("erlc", "erlang-base"), ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")),
    ),
)
