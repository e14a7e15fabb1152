from compat.applications.application import Application
from compat.applications.virtual_environment import COMMAND, INSTALL, REFUSAL

APPLICATION = Application(
    name="aiida",
    language="Python",
    version="2.9.4",
    command=COMMAND,
    install=INSTALL,
    queue="aiida-00000000000000000000000000000001.process.queue",
    # 4.3 refuses some of its broadcasts: see docs/applications.md.
    oracle="4.0",
    # They are in its database.
    sends_texts=False,
    refusal=REFUSAL,
)
