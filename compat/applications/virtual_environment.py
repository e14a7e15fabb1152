"""Commands and texts of applications with an environment of their own, for the `row.py` of their folders.

kiwipy, and AiiDA with it, needs an older aio-pika than the tests.
"""

import sys

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", "venv/bin/python")
COMMAND = ("venv/bin/python", "jobs.py")
INSTALL = (
    (sys.executable, "-m", "venv", "--without-pip", "venv"),
    (*PIP, "install", "--quiet", "-r", "requirements.txt"),
)
# The refusal of a vhost comes without its reason.
REFUSAL = r"[A-Z]+_[A-Z]+ - .*|one of \['Connection.OpenOk'\]\", <Connection.Close"
