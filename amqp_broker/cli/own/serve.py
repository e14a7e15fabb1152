"""`amqp-broker serve`: run the broker in the foreground until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Final

from amqp_broker.cli.own import bus_error, greeting
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.demo import served_demo
from amqp_broker.exit_codes import EX_CANTCREAT, EX_NOHOST, EX_NOPERM, EX_OSERR, EX_UNAVAILABLE
from amqp_broker.server import administration_log, log_output
from amqp_broker.server.listening import CannotListen
from amqp_broker.server.server import Server
from amqp_broker.settings.sources.conf_keys import Notice
from amqp_broker.settings.sources.precedence import Loaded
from amqp_broker.store.environment import DATA_FILE, StoreInUse

# mallopt(3)
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
HEAP_TOP_BYTES_KEPT: Final = 32 * 1024 * 1024
MMAP_BYTES_MIN: Final = 4 * 1024 * 1024

# Time after which a thread that imports lets the loop's thread work, instead of Python's 5 ms.
IMPORT_SWITCH_S: Final = 0.0005

logger = logging.getLogger("amqp_broker.cli")

_import_lock = threading.Lock()


def serve(loaded: Loaded) -> None:
    """Run the broker with these settings until SIGTERM or SIGINT."""
    loaded.check_strict()
    log_output.start(loaded.settings)
    is_short = greeting.is_short(loaded.settings)
    if is_short:
        greeting.withhold()
    if loaded.files:
        logger.info("%s", administration_log.config_files(loaded.files))
    log_notices(loaded.notices)
    try:
        with without_collections():
            store = loaded.settings.store_path
            if store is not None:
                bus_error.explain(store / DATA_FILE)
            try:
                server = Server(loaded.settings)
            except StoreInUse as error:
                from amqp_broker.cli.own import conflicts
                from amqp_broker.cli.own.store import exit_code_of

                reason = CommandError(str(error), exit_code_of(error))
                raise conflicts.explain(loaded.settings, reason) from None
            server.config_files = loaded.files
        tune_memory()
        raise_file_limit()
        run_loop(_serve(server, is_short))
    finally:
        # The reason of a failure, which the caller prints, comes last.
        log_output.flush()


async def _serve(server: Server, is_short: bool) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def end(received: signal.Signals) -> None:
        if received is signal.SIGINT:
            leave_interrupted_line()
        logger.info(administration_log.SIGNALLED, received.name)
        stopped.set()

    for received in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(received, end, received)
    server.request_stop = stopped.set
    server.http.importing = beside_clients
    served_demo.install(server)
    try:
        await server.start()
    except CannotListen as error:
        reason = explain(error.host, error.port, error.error)
        if error.error.errno == errno.EADDRINUSE:
            from amqp_broker.cli.own import conflicts

            reason = conflicts.explain(server.settings, reason, error.port)
        raise reason from None
    except OSError as error:
        if error.filename is None:
            raise CommandError(f"cannot start: {error.strerror or error}.", EX_OSERR) from None
        path = server.settings.ports_file
        raise CommandError(f"cannot write the ports file '{path}': {error.strerror}.", EX_CANTCREAT) from None
    if is_short:
        greeting.greet(server)
    await stopped.wait()
    if server.broken is not None:
        await server.give_up()
        raise CommandError(server.broken, server.exit_code)
    await server.stop()
    logger.info("%s", administration_log.STOPPED)


def explain(host: str, port: int, error: OSError) -> CommandError:
    """Return the reason why the broker cannot listen there."""
    if isinstance(error, socket.gaierror):
        return CommandError(f"cannot listen on '{host}': {error.strerror}.", EX_NOHOST)
    where = f"port {port} of '{host}'"
    if error.errno == errno.EADDRINUSE:
        return CommandError(f"{where} is in use by another program.", EX_UNAVAILABLE)
    if error.errno in (errno.EACCES, errno.EPERM):
        return CommandError(f"this user may not listen on {where}.", EX_NOPERM)
    # The text of `socket` would repeat the place.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return CommandError(f"cannot listen on {where}: {reason}.", EX_NOHOST)


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def log_notices(notices: list[Notice]) -> None:
    """Log errors in files, and settings without effect."""
    for notice in notices:
        logger.log(logging.WARNING if notice.is_wrong else logging.INFO, "%s", notice.text)


def raise_file_limit() -> None:
    """Accept as many clients as the system allows; the soft limit is low only for programs with select(2)."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def without_authorities() -> Iterator[None]:
    """Import aiohttp without loading the certificate authorities for its client.

    aiohttp loads all of the system at import, which takes a quarter of that time and 2 MB; the broker does not use the
    client. OpenSSL finds them through the environment, which is restored for programs that embed the broker.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    given = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(given)


@contextlib.contextmanager
def beside_clients() -> Iterator[None]:
    """Import aiohttp in a thread while the loop's thread serves clients, one import at a time.

    The loop need not wait long for the interpreter, and no collection walks over the new modules, now or later.
    """
    with _import_lock:
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(IMPORT_SWITCH_S)
        gc.disable()
        try:
            with without_authorities():
                yield
        finally:
            gc.freeze()
            gc.enable()
            sys.setswitchinterval(interval_s)


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile, and exclude all objects so far from collections.

    A start makes objects that stay. With a hundred thousand queues to restore, collections took half of the time.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def tune_memory() -> None:
    """Keep freed memory in the process, and collect garbage less often.

    glibc returns the top of its heap to the system whenever it can, so that buffers of a few hundred KiB would be paged
    in again for every read: most of the cost of large messages. Messages hold no cycles, so a collection among a
    million of them finds nothing; one of the ten thousand newest objects takes a millisecond or two, and one of those
    that survived the last five collections a few. Older objects are left alone.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(M_TRIM_THRESHOLD, HEAP_TOP_BYTES_KEPT)
            libc.mallopt(M_MMAP_THRESHOLD, MMAP_BYTES_MIN)
    gc.set_threshold(10_000, 5, 1_000_000)
