import sys

from compat.applications.application import Application

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", "venv/bin/python")

APPLICATION = Application(
    name="aiida",
    language="Python",
    version="2.9.4",
    command=("venv/bin/python", "jobs.py"),
    # Of its own, as it needs an older aio-pika than the tests.
    install=(
        (sys.executable, "-m", "venv", "--without-pip", "venv"),
        (*PIP, "install", "--quiet", "-r", "requirements.txt"),
    ),
    queue="aiida-00000000000000000000000000000001-process.queue",
    # 4.3 refuses some of its broadcasts: see docs/applications.md.
    oracle="4.0",
    # They are in its database.
    sends_texts=False,
    # That of a vhost comes without its reason.
    refusal=r"[A-Z]+_[A-Z]+ - .*|one of \['Connection.OpenOk'\]\", <Connection.Close",
)
