"""The programs `amqp-broker` and `amqp-minibroker`.

The package index has another distribution, `amqp-broker`, whose only module has the name of this package. It does not
stop the two from being installed into one environment.
"""

from __future__ import annotations

import sys

# sysexits.h: something is configured wrongly.
EX_CONFIG = 78
SHADOWED = (
    "amqp-broker: the module amqp_broker is that of another package from the package index, 'amqp-broker'. This program"
    " belongs to 'amqp-minibroker'. Run: pip uninstall --yes amqp-broker &&"
    " pip install --force-reinstall --no-deps amqp-minibroker"
)


def main() -> None:
    """Run the program and exit, with a sentence and exit code 78 if the other package is in the way."""
    if not is_ours():
        print(SHADOWED, file=sys.stderr)
        sys.exit(EX_CONFIG)
    from amqp_broker.cli.main import main as run

    run()


def is_ours() -> bool:
    """Return whether the module amqp_broker is that of this distribution."""
    try:
        import amqp_broker
    except SyntaxError:
        # The other one is written for Python 2.
        return False
    return getattr(amqp_broker, "DISTRIBUTION", None) == "amqp-minibroker"


if __name__ == "__main__":
    main()
