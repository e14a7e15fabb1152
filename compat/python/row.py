"""The clients of Python: a program each, and an environment each, since they need different versions of one another.

Those that the project's own environment has need no other.
"""

import sys
from importlib import metadata

from compat.matrix.rows import Row

# What is installed for each; the first is the client, and its version the row's.
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
    "nameko": ["nameko==2.14.1", "setuptools<81"],
}


def _row(name: str, requirements: list[str]) -> Row:
    version, program = requirements[0].split("==")[1], f"play_{name.replace('-', '_')}.py"
    if _is_here(requirements):
        return Row(name, "Python", version, (sys.executable, program))
    environment = f"venv-{name}"
    install = (
        (sys.executable, "-m", "venv", environment),
        (f"{environment}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *requirements),
    )
    return Row(name, "Python", version, (f"{environment}/bin/python", program), install)


def _is_here(requirements: list[str]) -> bool:
    """Whether this environment has just that: extras cannot be looked up, so who needs one gets his own."""
    try:
        return all(metadata.version(name) == version for name, version in (r.split("==") for r in requirements))
    except (metadata.PackageNotFoundError, ValueError):
        return False


ROWS = tuple(_row(name, requirements) for name, requirements in REQUIREMENTS.items())
