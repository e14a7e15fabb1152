"""The scenarios as command lines of RabbitMQ's load generator PerfTest, and what it then prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlsplit

# As a shell script of its distribution starts it, but for short runs on a machine that has other work.
FRUGAL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
JAVA = ("java", *FRUGAL, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
MAIN = ("-cp", "target/lib/*", "com.rabbitmq.perf.PerfTest")
URL = os.environ["AMQP_URL"]
TIMEOUT_S = 60
# Messages per second where what matters is that they do not stop.
RATE = 100
# PerfTest prints a line of rates each second.
PERIOD_S = 1


class Unsupported(Exception):
    """Scenarios for which PerfTest has no option."""


def name(stem: str) -> str:
    return f"{os.environ['PREFIX']}.{stem}"


def start(*options: str, url: str = URL, java: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """PerfTest with these options, and its output as lines."""
    command = [*JAVA, *java, *MAIN, "--uri", url, "--shutdown-timeout", "1", *options]
    print(" ".join(options), flush=True)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")


def perf_test(*options: str, url: str = URL, java: tuple[str, ...] = (), exit_code: int = 0) -> str:
    """Run it to its end and return what it printed."""
    process = start(*options, url=url, java=java)
    try:
        printed, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    print(printed, flush=True)
    assert process.returncode == exit_code, f"exit code {process.returncode} of {' '.join(options)}"
    return printed


def rates(line: str) -> dict[str, float]:
    """Return the rates in a line of the output, by name."""
    return {what: float(rate) for what, rate in re.findall(r"(\w+): ([\d.]+) msg/s", line)}


def printed_s(line: str) -> float | None:
    """Return the time in a line of rates, in seconds since PerfTest began."""
    found = re.search(r"time ([\d.]+) ?s", line)
    return float(found[1]) if found else None


def seen(printed: str, what: str) -> bool:
    return any(rates(line).get(what) for line in printed.splitlines())


def connect() -> None:
    perf_test("--queue", name("connect"), "--pmessages", "500", "--cmessages", "500")


def topology() -> None:
    pattern = ("--queue-pattern", name("topology") + "-%d", "--queue-pattern-from", "1", "--queue-pattern-to", "3")
    exchange = ("--exchange", name("events"), "--type", "topic", "--routing-key", "order.created")
    perf_test(*pattern, *exchange, "-x", "3", "-y", "3", "--pmessages", "100", "--cmessages", "100")


def confirms() -> None:
    options = ("--flag", "persistent", "--pmessages", "2000", "--cmessages", "2000")
    printed = perf_test("--queue", name("confirms"), "--confirm", "100", *options)
    assert "confirm latency" in printed
    assert not seen(printed, "nacked")


def returns() -> None:
    options = ("--consumers", "0", "--skip-binding-queues", "--routing-key", "nowhere", "--flag", "mandatory")
    queue = ("--queue", name("returns"), "--exchange", name("nowhere"))
    assert seen(perf_test(*queue, *options, "--rate", "100", "--confirm", "10", "--time", "3"), "returned")


def consume() -> None:
    options = ("--qos", "10", "--multi-ack-every", "5", "--producers", "2", "--consumers", "1")
    perf_test("--queue", name("consume"), *options, "--pmessages", "500", "--cmessages", "1000")


def requeue() -> None:
    options = ("--nack", "--requeue", "true", "--qos", "10", "--pmessages", "50", "--cmessages", "500")
    perf_test("--queue", name("requeue"), *options)


def dead_letters(stem: str, extra: str, *options: str) -> None:
    """Let fifty messages go from a queue to another one in which there is one already."""
    dead = name(f"{stem}-dead")
    perf_test("--queue", dead, "--consumers", "0", "--pmessages", "1")
    arguments = f"x-dead-letter-exchange=,x-dead-letter-routing-key={dead}{extra}"
    queue = ("--queue", name(stem), "--queue-args", arguments, "--pmessages", "50")
    perf_test(*queue, *options)
    perf_test("--queue", dead, "--predeclared", "--producers", "0", "--cmessages", "51")


def dead_letter() -> None:
    dead_letters("rejected", "", "--nack", "--requeue", "false", "--cmessages", "50")


def ttl() -> None:
    dead_letters("all", ",x-message-ttl=100", "--consumers", "0")
    dead_letters("own", "", "--message-properties", "expiration=100", "--consumers", "0")


def priority() -> None:
    options = ("--queue-args", "x-max-priority=5", "--message-properties", "priority=3")
    perf_test("--queue", name("priority"), *options, "--pmessages", "500", "--cmessages", "500")


def rpc() -> None:
    raise Unsupported("it sends no questions")


def server_named() -> None:
    perf_test("--exclusive", "--producers", "1", "--consumers", "2", "--pmessages", "500", "--cmessages", "500")


def cancel() -> None:
    """A consumer that is cancelled says so."""
    queue = name("cancel")
    process = start("--queue", queue, "--auto-delete", "false", "--rate", "50", "--time", "6")
    try:
        for line in lines(process):
            if rates(line).get("received"):
                break
        delete_queue(queue)
        rest = process.communicate(timeout=TIMEOUT_S)[0]
    finally:
        process.kill()
    print(rest, flush=True)
    assert "cancelled by broker" in rest


def stream() -> None:
    queue = ("--queue", name("stream"), "--stream-queue", "--auto-delete", "false")
    perf_test(*queue, "--consumers", "0", "--confirm", "10", "--pmessages", "100")
    read = (*queue, "--producers", "0", "--qos", "10")
    perf_test(*read, "--stream-consumer-offset", "first", "--cmessages", "100")
    perf_test(*read, "--stream-consumer-offset", "90", "--cmessages", "10")
    delete_queue(name("stream"))


def large() -> None:
    perf_test("--queue", name("large"), "--size", str(16 << 20), "--pmessages", "3", "--cmessages", "3")


def tls() -> None:
    store = ("-Djavax.net.ssl.trustStore=trusted.p12", "-Djavax.net.ssl.trustStorePassword=changeit")
    authority = ("-file", os.environ["CA_FILE"], "-alias", "authority")
    subprocess.run(["rm", "-f", "trusted.p12"], check=True)
    keytool = ("keytool", "-importcert", "-noprompt", "-keystore", "trusted.p12", "-storepass", "changeit")
    subprocess.run([*keytool, *authority], check=True, capture_output=True)
    options = ("--queue", name("tls"), "--use-default-ssl-context", "--pmessages", "100", "--cmessages", "100")
    perf_test(*options, url=os.environ["AMQPS_URL"], java=store)
    assert "PKIX path" in perf_test(*options, url=os.environ["AMQPS_URL"], exit_code=1)


def wrong_password() -> None:
    url = URL.replace("guest:guest", "guest:wrong")
    assert "ACCESS_REFUSED" in perf_test("--queue", name("refused"), "--pmessages", "1", url=url, exit_code=1)


def survives(what: str) -> None:
    """It goes on publishing and consuming on connections that it has recovered."""
    durable = ("--flag", "persistent", "--auto-delete", "false", "--confirm", "10")
    recovery = ("--connection-recovery-interval", "1", "--rate", str(RATE), "--time", "25")
    process = start("--queue", name(what.lower()), *durable, *recovery)
    try:
        output = lines(process)
        began_s = 0.0
        for line in output:
            if rates(line).get("received"):
                began_s = time.monotonic() - (printed_s(line) or 0)
                break
        print(what, flush=True)
        assert sys.stdin.readline().strip() == "DONE"
        # Now the connections of before are closed. A broker may be back so soon that no second is without messages.
        done_s = time.monotonic() - began_s
        for line in output:
            since_done_s = (printed_s(line) or 0) - done_s
            if since_done_s > PERIOD_S and rates(line).get("received", 0) > RATE / 2:
                return
        raise AssertionError("it does not receive again")
    finally:
        process.kill()
        process.wait()
        delete_queue(name(what.lower()))


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        yield line


def delete_queue(queue: str) -> None:
    url = urlsplit(os.environ["MANAGEMENT_URL"])
    path = f"http://{url.hostname}:{url.port}/api/queues/%2F/{quote(queue, safe='')}"
    request = urllib.request.Request(path, method="DELETE")
    request.add_header("Authorization", "Basic " + b64encode(f"{url.username}:{url.password}".encode()).decode())
    urllib.request.urlopen(request, timeout=10).close()


SCENARIOS: dict[str, Callable[[], None]] = {
    "connect": connect,
    "topology": topology,
    "confirms": confirms,
    "returns": returns,
    "consume": consume,
    "requeue": requeue,
    "dead_letter": dead_letter,
    "ttl": ttl,
    "priority": priority,
    "rpc": rpc,
    "server_named": server_named,
    "cancel": cancel,
    "stream": stream,
    "large": large,
    "tls": tls,
    "wrong_password": wrong_password,
    "forced_close": lambda: survives("CLOSE"),
    "reconnect": lambda: survives("RESTART"),
}


def outcome(scenario: str) -> str:
    try:
        SCENARIOS[scenario]()
    except Unsupported as unsupported:
        return f"unsupported {unsupported}"
    except Exception as error:
        return "failed " + " ".join(f"{type(error).__name__}: {error}".split())
    return "ok"


for scenario in sys.argv[1:]:
    print(f"RESULT {scenario} {outcome(scenario)}", flush=True)
