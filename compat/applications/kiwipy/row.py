from compat.applications.application import Application
from compat.applications.virtual_environment import COMMAND, INSTALL, REFUSAL

APPLICATION = Application(
    name="kiwipy",
    language="Python",
    version="0.9.0",
    command=COMMAND,
    install=INSTALL,
    refusal=REFUSAL,
)
