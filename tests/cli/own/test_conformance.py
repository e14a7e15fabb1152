"""`amqp-broker conformance`, as makers of brokers run it."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compat.waiting import wait_until
from tests.cli.program import TIMEOUT_S, environment, program, run
from tests.running import RunningServer


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with RunningServer(compat="4.3") as one:
        yield one


def test_a_broker_that_agrees_is_a_success(server: RunningServer, tmp_path: Path) -> None:
    html, junit = tmp_path / "report.html", tmp_path / "junit.xml"
    done = run("conformance", server.url, "--only", "sharing/", "--html", str(html), "--junit", str(junit))
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, last = done.stdout.splitlines()
    assert "is compared with RabbitMQ 4.3.6 (it is RabbitMQ 4.3." in first
    word, count, *others = last.split()
    assert (word, others) == ("All", ["0", "0"])
    assert ElementTree.parse(junit).getroot().get("tests") == count
    assert '<h2 id="sharing">Sharing</h2>' in html.read_text("utf-8")


def test_random_programs_and_the_http_api_are_played_in_a_vhost_of_their_own() -> None:
    with RunningServer(compat="4.3", management=True, management_port=0) as one:
        command = ("conformance", one.url, "--duel", "--management", one.management_url, "--only")
        over_http = run(*command, "http_queues/")
        program = run(*command, "random_programs/program_001")
        left = one.ask(lambda running: (sorted(running.broker.vhosts), sorted(running.broker.users)))
    assert (over_http.returncode, over_http.stderr) == (0, "")
    assert over_http.stdout.splitlines()[-2].startswith("Http queues")
    assert program.stdout.splitlines()[-2].startswith("Random programs")
    assert left == (["/"], ["guest"])


def test_an_api_that_does_not_permit_a_vhost_is_a_sentence() -> None:
    with RunningServer(management=True, management_port=0) as one:
        uri = f"amqp://guest:wrong@127.0.0.1:{one.port}/"
        done = run("conformance", uri, "--management", one.management_url)
    assert done.returncode == 77
    assert "a vhost cannot be added for the run: PUT /api/vhosts/conformance-" in done.stderr
    assert done.stderr.endswith(" is answered with 401.\n")


def test_a_difference_is_reported_and_is_the_exit_code(server: RunningServer, tmp_path: Path) -> None:
    """A broker that answers as 4.3 differs from 3.10."""
    html, junit = tmp_path / "report.html", tmp_path / "junit.xml"
    command = ["conformance", server.url, "--as", "3.10", "--only", "queues/"]
    done = run(*command, "--html", str(html), "--junit", str(junit))
    assert (done.returncode, done.stderr) == (1, "")
    root = ElementTree.parse(junit).getroot()
    failures = list(root.iter("failure"))
    assert len(failures) == int(root.get("failures") or 0) > 0
    assert "    RabbitMQ    a1< " in done.stdout
    assert html.read_text("utf-8").count('<table class="frames">') == len(failures)


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("http://localhost/",), 64, '"http://localhost/" not a valid URI: it should be like amqp://user:password@'),
        (("amqp://",), 64, "the URI has no host."),
        (("URI", "--as", "5.0"), 64, "no answers of RabbitMQ '5.0' are known: choose 3.10, 4.0 or 4.3, or a version"),
        (("URI", "--only", "no such"), 64, "no scenario contains 'no such'."),
        (("URI", "--duel", "--only", "program_9999"), 64, "no scenario contains 'program_9999'."),
        (("URI", "--management", "localhost:15672"), 64, "'localhost:15672' is no URL of an HTTP API, such as http://"),
        (("URI", "--management", "http://127.0.0.1:9"), 69, "the HTTP API at http://127.0.0.1:9 does not answer: "),
        (("URI", "--html", "/missing/report.html"), 73, "cannot write '/missing/report.html': No such file or"),
        (("URI", "--junit", "/"), 73, "cannot write '/': Is a directory."),
        (("REFUSED",), 77, "the broker refuses the login of 'guest': ACCESS_REFUSED"),
        (("VHOST",), 77, "the broker refuses the vhost 'missing': NOT_ALLOWED - vhost missing not found."),
        (("UNREACHABLE",), 69, "the broker cannot be reached: "),
        (("amqps://localhost/?cacertfile=/missing",), 64, "cannot use TLS with amqps://localhost/: "),
    ],
)
def test_wrong_input_is_a_sentence_and_an_exit_code(
    server: RunningServer, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        uris = {
            "URI": server.url,
            "REFUSED": f"amqp://guest:wrong@127.0.0.1:{server.port}/",
            "VHOST": f"amqp://127.0.0.1:{server.port}/missing",
            "UNREACHABLE": f"amqp://127.0.0.1:{unused.getsockname()[1]}/",
        }
        done = run("conformance", *(uris.get(one, one) for one in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert done.stderr.endswith(".\n")
    assert not done.stderr.endswith("..\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_behind(number: signal.Signals, code: int) -> None:
    with RunningServer() as server:
        command = [*program(), "conformance", server.url, "--only", "consumer_timeouts"]
        process = subprocess.Popen(
            command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            server.until(lambda one: len(one.broker.vhosts["/"].queues) >= 3)
            process.send_signal(number)
            assert process.wait(TIMEOUT_S) == code
        finally:
            process.kill()
        wait_until(lambda: not server.ask(lambda one: [*one.broker.vhosts["/"].queues]))
