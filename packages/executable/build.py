"""Build the single executable: `python packages/executable/build.py FOLDER FILE`.

FOLDER has the compiled package (`make compiled`). PyInstaller makes a folder with the program, Python and all
libraries; the file is a shell script (`unpack.sh`) with that folder behind it. PyInstaller's own single file would
unpack itself at each start, and leave its files and a second process behind when it is killed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
# Files that are read as data, by folder of the package. The rabbitmqadmin to download is made of sources.
DATA: Final = (
    *("management/page/static", "pipeline/static", "conformance/recorded", "run_report/style.css"),
    *("cli/rabbitmq/*.py", "cli/shared/*.py", "exit_codes.py", "settings/profiles.py"),
)
# Packages of the extras, and others that libraries use only if they are there.
LEFT_OUT: Final = (
    *("celery", "deltalake", "duckdb", "mcp", "numpy", "pandas", "pyarrow", "pyspark", "pyspark_amqp", "pytest"),
    *("_pytest", "IPython", "PIL", "hypothesis", "matplotlib", "psutil", "pydantic", "pydantic_core", "readline"),
    *("setuptools", "tkinter", "yaml"),
)


def collect(compiled: Path, folder: Path) -> Path:
    """Make the folder of the program with PyInstaller, and return it. Raise CalledProcessError."""
    package = compiled / "amqp_broker"
    options = ["--onedir", "--strip", "--noconfirm", "--log-level", "ERROR", "--name", "amqp-broker"]
    places = ["--distpath", str(folder), "--workpath", str(folder / "work"), "--specpath", str(folder)]
    # All compiled modules import the hidden one.
    modules = ["--paths", str(compiled), "--collect-submodules", "amqp_broker", "--hidden-import", "amqp_broker__mypyc"]
    for path in (path for pattern in DATA for path in sorted(package.glob(pattern))):
        place = path if path.is_dir() else path.parent
        modules += ["--add-data", f"{path}:{place.relative_to(compiled)}"]
    for name in LEFT_OUT:
        modules += ["--exclude-module", name]
    subprocess.run(
        [sys.executable, "-m", "PyInstaller", *options, *places, *modules, str(HERE / "entry.py")],
        # PyInstaller imports the package in processes of its own.
        env={**os.environ, "PYTHONPATH": str(compiled)},
        check=True,
    )
    return folder / "amqp-broker"


def packed(folder: Path) -> bytes:
    """Return a folder as a compressed archive, the same for the same files."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, "program", filter=plain)
    return gzip.compress(buffer.getvalue(), 9, mtime=0)


def write(archive: bytes, library: str, executable: Path) -> None:
    """Write the executable: the script that unpacks, and the archive."""
    script = (HERE / "unpack.sh").read_text("utf-8")
    name, line = hashlib.sha256(archive).hexdigest()[:16], script.count("\n") + 1
    names = {"@NAME@": name, "@LINE@": f"{line}", "@LIBRARY@": library}
    for name, value in names.items():
        script = script.replace(name, value)
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_bytes(script.encode() + archive)
    executable.chmod(0o755)


def main(arguments: Sequence[str]) -> None:
    compiled, executable = map(Path, arguments)
    with tempfile.TemporaryDirectory() as folder:
        program = collect(compiled.absolute(), Path(folder))
        (library,) = program.glob("_internal/libpython*.so.*")
        write(packed(program), library.name, executable)
    print(f"{executable}: {executable.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
