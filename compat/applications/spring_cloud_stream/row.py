from compat.applications.application import Application

# A program of a test needs no large heap and soon ends, and its machine has other work.
FRUGAL = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
MAIN = ("-cp", "target/jobs.jar:target/lib/*", "jobs.Jobs")

APPLICATION = Application(
    name="spring-cloud-stream",
    language="Java",
    version="5.0.4",
    command=(*FRUGAL, "-XX:SharedArchiveFile=target/jobs.jsa", *MAIN),
    install=(
        ("mvn", "--quiet", "--batch-mode", "-Dmaven.test.skip", "package"),
        # With an archive of its classes, as Spring Boot recommends, it starts in half of the processor time.
        (
            *(*FRUGAL, "-XX:ArchiveClassesAtExit=target/jobs.jsa", "-Dspring.context.exit=onRefresh"),
            *("-DAMQP_URL=amqp://localhost", *MAIN, "serve"),
        ),
    ),
    programs=(("mvn", "maven"), ("javac", "openjdk-17-jdk-headless")),
    queue="jobs.workers",
    refusals=(r"(ACCESS_REFUSED|NOT_ALLOWED|PRECONDITION_FAILED) - [^()\n]+",),
)
