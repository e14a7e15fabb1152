from compat.applications.application import Application
from compat.matrix.java import JAVA, PROGRAMS

MAIN = ("-cp", "target/jobs.jar:target/lib/*", "jobs.Jobs")

APPLICATION = Application(
    name="spring-cloud-stream",
    language="Java",
    version="5.0.4",
    command=(*JAVA, "-XX:SharedArchiveFile=target/jobs.jsa", *MAIN),
    install=(
        ("mvn", "--quiet", "--batch-mode", "-Dmaven.test.skip", "package"),
        # With an archive of its classes, as Spring Boot recommends, it starts in half of the processor time.
        (
            *(*JAVA, "-XX:ArchiveClassesAtExit=target/jobs.jsa", "-Dspring.context.exit=onRefresh"),
            *("-DAMQP_URL=amqp://localhost", *MAIN, "serve"),
        ),
    ),
    programs=PROGRAMS,
    queue="jobs.workers",
)
