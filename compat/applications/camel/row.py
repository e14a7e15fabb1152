from compat.applications.application import Application
from compat.matrix.java import CLASSES, INSTALL, JAVA, PROGRAMS

APPLICATION = Application(
    name="camel",
    language="Java",
    version="4.17.0",
    command=(*JAVA, *CLASSES, "jobs.Jobs"),
    install=INSTALL,
    programs=PROGRAMS,
)
