"""The environments, a row each: variables, and commands before, beside and around `make test`.

In all commands `{folder}` is a new folder of this run, `{here}` the folder of this file, `{cache}` a folder that is
kept, and `{python}` the running interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Command = tuple[str, ...]


@dataclass(frozen=True)
class Environment:
    """A machine that differs in one thing."""

    name: str
    changes: str
    # A shell script that fails where the environment has no effect; run as the tests are, in the first clone.
    probe: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    # Commands that run before the tests, and commands that run during the tests.
    prepare: tuple[Command, ...] = ()
    beside: tuple[Command, ...] = ()
    # The test command is appended to this command.
    wrap: Command = ()
    # The Debian package of each program that is needed.
    programs: Mapping[str, str] = field(default_factory=dict)
    needs_root: bool = False
    # Each run has its own order.
    is_shuffled: bool = False
    # Runs in a row in one clone, and clones at once.
    runs: int = 1
    copies: int = 1
    # Everything is downloaded before the tests.
    is_offline: bool = False
    # The version of Python; the machine must have it.
    python: str = ""


def in_shell(script: str, *arguments: str) -> Command:
    """Return a shell command that runs the script and then the command that is appended."""
    return ("sh", "-ec", f'{script}\nexec "$@"', *(arguments or ("sh",)))


NO_IPV6 = """
ip link set lo up
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
"""
# As Debian writes /etc/hosts, but without the machine's name, and with IPv6 first.
NO_HOST_NAME = """
hostname nowhere
printf '::1 localhost\\n127.0.0.1 localhost\\n' > {folder}/hosts
mount --bind {folder}/hosts /etc/hosts
export HOSTNAME=nowhere
"""
READ_ONLY_HOME = """
mkdir -p {folder}/home
mount --bind -o ro {folder}/home {folder}/home
export HOME={folder}/home
unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
"""
# The user exists only in this mount namespace.
OTHER_USER = """
mkdir -p {folder}/home {folder}/tmp
chown -R 61234:61234 {folder}
{ cat /etc/passwd; echo 'tester:x:61234:61234::{folder}/home:/bin/sh'; } > {folder}/passwd
mount --bind {folder}/passwd /etc/passwd
export HOME={folder}/home TMPDIR={folder}/tmp USER=tester LOGNAME=tester PATH=/usr/local/bin:/usr/bin:/bin
unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
set -- setpriv --reuid 61234 --regid 61234 --clear-groups "$@"
"""
UNSHARE = {"unshare": "util-linux", "mount": "mount"}
# Ends the programs beside the tests with the tests.
SETPRIV = {"setpriv": "util-linux"}

IS_SHUFFLED = "make -n test SEED=1 | grep -q -e '--shuffle 1'"
FSYNC_IS_SLOW = """
{python} -c '
import os, time
file = open("probe", "wb")
started = time.monotonic()
os.fsync(file.fileno())
assert time.monotonic() - started >= 0.02, "fsync takes less than 20 ms"'
rm probe
"""
CORE_IS_BUSY = """
{python} -c '
import pathlib, time
def idle():
    user, nice, system, idle, *others = map(int, pathlib.Path("/proc/stat").read_text().splitlines()[1].split()[1:])
    return idle, user + nice + system + idle + sum(others)
idle_before, all_before = idle()
time.sleep(0.5)
idle_after, all_after = idle()
assert idle_after - idle_before < (all_after - all_before) / 2, "the core is idle"'
"""
NO_IPV6_WORKS = """
{python} -c '
import socket
try:
    socket.create_server(("::1", 0), family=socket.AF_INET6)
except OSError:
    pass
else:
    raise AssertionError("IPv6 works")'
test -z "$(ip route)" || { echo "there is a route" >&2; exit 1; }
"""
PORTS_ARE_TAKEN = """
{python} -c '
import socket
for port in (5672, 15672, 15692):
    socket.create_connection(("127.0.0.1", port), 1)'
"""
LOCALE_IS_TURKISH = """
test "$(date +%z)" = +0545 || { echo "the time zone is $(date +%z)" >&2; exit 1; }
{python} -c 'import locale; locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")'
"""
ENCODING_IS_ASCII = """
test "$(date +%z)" != +0000 || { echo "the time zone is UTC" >&2; exit 1; }
{python} -c '
import codecs, locale
assert codecs.lookup(locale.getpreferredencoding(False)).name == "ascii", locale.getpreferredencoding(False)'
"""
HOST_NAME_IS_UNKNOWN = """
{python} -c '
import socket
assert socket.getaddrinfo("localhost", 0)[0][4][0] == "::1", "localhost is not ::1 first"
try:
    socket.getaddrinfo(socket.gethostname(), 0)
except OSError:
    pass
else:
    raise AssertionError("the host name resolves")'
"""
HOME_IS_READ_ONLY = 'if touch "$HOME/probe" 2>/dev/null; then echo "HOME is writable" >&2; exit 1; fi'
USER_IS_ANOTHER = """
test "$(id -u)" = 61234 || { echo "the user is $(id -u)" >&2; exit 1; }
if sudo -n true 2>/dev/null; then echo "sudo works" >&2; exit 1; fi
"""


PACKAGES = ("git", "make", "python3", "python3-venv")


def debian(name: str, release: str, python: str) -> Environment:
    root = f"{{cache}}/{release}"
    alone = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    return Environment(
        name,
        f"A user without root in a chroot of Debian {release} that has no more than git, make and Python {python}",
        f'{USER_IS_ANOTHER}. /etc/os-release\ntest "$VERSION_CODENAME" = {release}',
        prepare=(("{python}", "-m", "compat.oracles.debian_root", release, root, *PACKAGES),),
        wrap=(*alone, "sh", "-e", "{here}/chroot.sh", "{folder}", root),
        programs={"mmdebstrap": "mmdebstrap", **UNSHARE},
        needs_root=True,
    )


ENVIRONMENTS = (
    Environment(
        "three-times",
        "Files, and the tests in each, in random order, three times in a row",
        IS_SHUFFLED,
        is_shuffled=True,
        runs=3,
    ),
    Environment("shuffled", "Files, and the tests in each, in random order", IS_SHUFFLED, is_shuffled=True),
    Environment(
        "slow-fsync",
        "20 ms more for each fsync, fdatasync and msync",
        FSYNC_IS_SLOW,
        prepare=(("cc", "-shared", "-fPIC", "-O2", "-o", "{folder}/slow_fsync.so", "{here}/slow_fsync.c"),),
        variables={"LD_PRELOAD": "{folder}/slow_fsync.so"},
        programs={"cc": "gcc"},
    ),
    Environment(
        "one-core", "One core", 'test "$(nproc)" = 1', wrap=("taskset", "-c", "0"), programs={"taskset": "util-linux"}
    ),
    Environment(
        "busy-core",
        "One of the cores is kept busy by another program",
        CORE_IS_BUSY,
        beside=(("taskset", "-c", "0", "sh", "-c", "while :; do :; done"),),
        programs={"taskset": "util-linux", **SETPRIV},
    ),
    Environment(
        "other-user",
        "Another user than root, without sudo",
        USER_IS_ANOTHER,
        wrap=("unshare", "--mount", *in_shell(OTHER_USER)),
        programs={**SETPRIV, **UNSHARE},
        needs_root=True,
    ),
    Environment(
        "no-ipv6",
        "No IPv6, and no network but 127.0.0.1: all is installed before",
        NO_IPV6_WORKS,
        wrap=("unshare", "--net", *in_shell(NO_IPV6)),
        programs={"ip": "iproute2", **UNSHARE},
        needs_root=True,
        is_offline=True,
    ),
    Environment(
        "taken-ports",
        "Another program listens on ports 5672, 15672 and 15692",
        PORTS_ARE_TAKEN,
        beside=(("{python}", "{here}/listen.py", "5672", "15672", "15692"),),
        programs=SETPRIV,
    ),
    Environment(
        "kathmandu",
        "A time zone 5:45 hours ahead of UTC, and Turkish, whose small I has no dot",
        LOCALE_IS_TURKISH,
        prepare=(("localedef", "-i", "tr_TR", "-f", "UTF-8", "{folder}/tr_TR.UTF-8"),),
        variables={"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "LOCPATH": "{folder}"},
        programs={"localedef": "locales"},
    ),
    Environment(
        "ascii",
        "A time zone 3:30 hours behind UTC, and ASCII as the encoding of all text",
        ENCODING_IS_ASCII,
        variables={"TZ": "America/St_Johns", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ),
    Environment("second-copy", "A second copy of the suite at the same time", "test -e ../clone1/Makefile", copies=2),
    Environment(
        "no-host-name",
        "A host name that does not resolve, and localhost is ::1 first",
        HOST_NAME_IS_UNKNOWN,
        wrap=("unshare", "--mount", "--uts", *in_shell(NO_HOST_NAME)),
        programs={"hostname": "hostname", **UNSHARE},
        needs_root=True,
    ),
    Environment(
        "read-only-home",
        "A HOME that nothing can be written to",
        HOME_IS_READ_ONLY,
        wrap=("unshare", "--mount", *in_shell(READ_ONLY_HOME)),
        programs=UNSHARE,
        needs_root=True,
    ),
    Environment("python-3.12", "Python 3.12", python="3.12"),
    Environment("python-3.13", "Python 3.13", python="3.13"),
    debian("debian-12", "bookworm", "3.11"),
    debian("debian-13", "trixie", "3.13"),
    debian("debian-14", "forky", "3.14"),
)
