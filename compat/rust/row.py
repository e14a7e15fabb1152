"""The clients of Rust: one package with a program each."""

from compat.matrix.rows import Row


def _row(name: str, version: str) -> Row:
    install = (("bash", "cargo.sh", "build", "--quiet", "--bins"),)
    programs = (("cc", "gcc"),)
    return Row(name, "Rust", version, (f"target/debug/play_{name}",), install, programs, timeout_s=90)


ROWS = (_row("amqprs", "2.1.5"), _row("lapin", "4.12.3"))
