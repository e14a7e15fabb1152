"""TLS of links to other brokers. A policymaker who defines a shovel names files of this machine.

They are opened in a thread: a pipe without a writer, or a file system whose server is away, would stop the broker. The
error is the same for each file that cannot be used, so that it does not tell what is on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import stat
import threading
from typing import Final

from amqp_broker.shovel.shovel_definition import Uri

FILES: Final = ("cacertfile", "certfile", "keyfile")
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
READ_TIMEOUT_S: Final = 10.0
# Threads that read longer than READ_TIMEOUT_S. Python cannot end them.
STUCK_MAX: Final = 4
UNUSABLE: Final = "its TLS files cannot be used"


class UnusableFiles(Exception):
    """A file of a URI cannot be used. `str()` is for the log of the operator."""


_stuck: set[threading.Thread] = set()


def tls_context(uri: Uri) -> ssl.SSLContext:
    """Return the TLS context that the query of a URI describes (RabbitMQ, "URI Query Parameters").

    Raise OSError for a file that is missing, or has other contents.
    """
    query = uri.query
    context = ssl.create_default_context(cafile=query.get("cacertfile"))
    if query.get("verify") == "verify_none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "certfile" in query:
        # Without a password OpenSSL would prompt for one at the terminal and block the broker.
        context.load_cert_chain(query["certfile"], query.get("keyfile"), query.get("password", ""))
    return context


async def read_tls_context(uri: Uri, timeout_s: float = READ_TIMEOUT_S) -> ssl.SSLContext:
    """Return `tls_context(uri)` of regular files, without blocking the loop. Raise UnusableFiles."""
    _stuck.difference_update([thread for thread in _stuck if not thread.is_alive()])
    if len(_stuck) >= STUCK_MAX:
        raise UnusableFiles("earlier reads of TLS files have not ended")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ssl.SSLContext | Exception] = loop.create_future()

    def finish(result: ssl.SSLContext | Exception) -> None:
        if not done.done():
            done.set_result(result)

    def read() -> None:
        result: ssl.SSLContext | Exception
        try:
            _require_regular(uri)
            result = tls_context(uri)
        except (OSError, ValueError) as error:
            result = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(finish, result)

    # Not of the executor, whose threads the interpreter awaits at its end.
    thread = threading.Thread(target=read, name="tls-files", daemon=True)
    thread.start()
    try:
        async with asyncio.timeout(timeout_s):
            result = await done
    except TimeoutError:
        _stuck.add(thread)
        raise UnusableFiles(f"reading its TLS files takes longer than {timeout_s:g} s") from None
    if isinstance(result, Exception):
        raise UnusableFiles(f"{type(result).__name__}: {result}") from None
    return result


def _require_regular(uri: Uri) -> None:
    """Raise OSError or ValueError for a file of a URI that is no regular file of a certificate's size."""
    for key in FILES:
        path = uri.query.get(key)
        if path is None:
            continue
        # Without waiting for the writer of a pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{key} '{path}' is not a regular file")
        if found.st_size > FILE_BYTES_MAX:
            raise ValueError(f"{key} '{path}' is larger than {FILE_BYTES_MAX} bytes")
