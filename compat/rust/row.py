"""The clients of Rust: one package with a program each, and rabbitmqadmin as the crate has it."""

from compat.matrix.rows import Row

PROGRAMS = (("cc", "gcc"),)
ADMIN = "2.35.0"
# Optimizations and symbols would take most of the time. Without the crate's lock file it needs the same versions as the
# programs, and in their folder for builds shares them.
FRUGAL = ("--quiet", "--debug", "--config", "profile.dev.debug=false", "--target-dir", "target")


NEWER_NODES = "it needs a field of nodes, `being_drained`, that RabbitMQ 3.10 lacks"


def _row(name: str, version: str, newer_only: dict[str, str] | None = None) -> Row:
    install = (("bash", "cargo.sh", "build", "--quiet", "--bins"),)
    command = (f"target/debug/play_{name}",)
    return Row(name, "Rust", version, command, install, PROGRAMS, "", newer_only or {}, timeout_s=90, build_s=200)


ROWS = (
    _row("amqprs", "2.1.5"),
    _row("lapin", "4.12.3"),
    _row("rabbitmq_http_client", "0.93.0", {"connect": NEWER_NODES}),
    Row(
        name="rabbitmqadmin-ng",
        language="Rust",
        version=ADMIN,
        command=("bash", "rabbitmqadmin.sh"),
        install=(("bash", "cargo.sh", "install", *FRUGAL, "--root", ".", f"rabbitmqadmin@{ADMIN}"),),
        programs=PROGRAMS,
        build_s=200,
        newer_only={"connect": NEWER_NODES},
    ),
)
