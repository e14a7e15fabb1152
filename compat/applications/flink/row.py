from compat.applications.application import Application
from compat.matrix.java import CLASSES, INSTALL, JAVA, PROGRAMS

APPLICATION = Application(
    name="flink",
    language="Java",
    version="1.20.5",
    # A cluster that is killed leaves its files behind.
    command=(*JAVA, "-Djava.io.tmpdir=target", *CLASSES, "jobs.Jobs"),
    install=INSTALL,
    programs=PROGRAMS,
)
