import sys
from importlib import metadata

from compat.applications.application import Application

APPLICATION = Application(
    name="celery",
    language="Python",
    version=metadata.version("celery"),
    command=(sys.executable, "jobs.py"),
    refusal=r"\(\d{3}\) [A-Z_]+ - .*",
)
