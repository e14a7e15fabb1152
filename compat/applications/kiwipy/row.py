import sys

from compat.applications.application import Application

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", "venv/bin/python")

APPLICATION = Application(
    name="kiwipy",
    language="Python",
    version="0.9.0",
    command=("venv/bin/python", "jobs.py"),
    # Of its own, as it needs an older aio-pika than the tests.
    install=(
        (sys.executable, "-m", "venv", "--without-pip", "venv"),
        (*PIP, "install", "--quiet", "-r", "requirements.txt"),
    ),
    # That of a vhost comes without its reason.
    refusal=r"[A-Z]+_[A-Z]+ - .*|one of \['Connection.OpenOk'\]\", <Connection.Close",
)
