from compat.matrix.rows import Row


def built(project: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands that build a project; its errors are the last lines of their output."""
    quiet = ("--verbosity", "quiet", "-consoleLoggerParameters:NoSummary")
    # Nothing that the build starts outlives it.
    alone = ("-nodeReuse:false", "-p:UseSharedCompilation=false")
    return (
        ("dotnet", "restore", project, *quiet),
        ("dotnet", "build", project, "--configuration", "Release", "--no-restore", "--nologo", *quiet, *alone),
    )


def row(name: str, version: str, project: str, *arguments: str) -> Row:
    program = ("dotnet", f"{project}/bin/Release/net10.0/{project}.dll", *arguments)
    # MassTransit waits longer before each attempt to connect again.
    return Row(name, ".NET", version, program, built(project), needs=("dotnet",), timeout_s=120.0)


ROWS = (
    row("rabbitmq.client", "7.2.2", "Matrix", "rabbitmq.client"),
    row("masstransit", "8.5.12", "Matrix", "masstransit"),
    row("masstransit service", "8.5.12", "Service"),
)
