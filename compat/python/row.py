"""Python's clients, each with a program and a virtual environment, since their versions conflict.

Those that the project's own environment has need no other.
"""

import sys
from importlib import metadata

from compat.matrix.rows import Row

# Packages of each client; the first is the client, whose version is the row's.
REQUIREMENTS = {
    "pika": ["pika==1.4.4"],
    "aio-pika": ["aio-pika==10.2.1"],
    "aiormq": ["aiormq==7.2.4"],
    "kombu": ["kombu==5.7.0"],
    "amqpstorm": ["amqpstorm[management]==3.1.4"],
    "celery": ["celery==5.7.0"],
    "flower": ["flower==2.2.0", "celery==5.7.0"],
    "dramatiq": ["dramatiq[rabbitmq]==2.2.1"],
    "taskiq": ["taskiq==0.13.0", "taskiq-aio-pika==0.6.1"],
    "faststream": ["faststream[rabbit]==0.7.8"],
    "oslo-messaging": ["oslo.messaging==18.3.1"],
    "nameko": ["nameko==2.14.1", "setuptools<81"],
}
# This environment's, for all others.
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def _row(name: str, requirements: list[str]) -> Row:
    version, program = requirements[0].split("==")[1], f"play_{name.replace('-', '_')}.py"
    if _is_here(requirements):
        return Row(name, "Python", version, (sys.executable, program))
    environment = f"venv-{name}"
    install = (
        (sys.executable, "-m", "venv", "--without-pip", environment),
        (*PIP, "--python", f"{environment}/bin/python", "install", "--quiet", *requirements),
    )
    return Row(name, "Python", version, (f"{environment}/bin/python", program), install)


def _is_here(requirements: list[str]) -> bool:
    """Return whether this environment has exactly these packages; those with extras get a new environment."""
    try:
        return all(metadata.version(name) == version for name, version in (r.split("==") for r in requirements))
    except (metadata.PackageNotFoundError, ValueError):
        return False


ROWS = tuple(_row(name, requirements) for name, requirements in REQUIREMENTS.items())
