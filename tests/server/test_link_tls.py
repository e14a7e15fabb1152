"""TLS files that a definition names: they neither stop the broker nor tell what is on its disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from amqp_broker.server import link_tls
from amqp_broker.server.link_tls import FILES, UnusableFiles, read_tls_context, tls_context
from amqp_broker.shovel.shovel_definition import parse_uri as uri
from tests.client import Client
from tests.running import RunningServer
from tests.server.shovels import shovel, states


def test_verify_none_accepts_any_certificate() -> None:
    context = tls_context(uri("amqps://host?verify=verify_none"))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_certificates_are_verified_by_default() -> None:
    context = tls_context(uri("amqps://host"))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize("query", ["cacertfile=/missing.pem", "certfile=/missing.pem"])
def test_a_missing_certificate_file_is_an_os_error(query: str) -> None:
    with pytest.raises(FileNotFoundError):
        tls_context(uri(f"amqps://host?{query}"))


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(link_tls.FILE_BYTES_MAX + 1)


def _text(path: Path) -> None:
    path.write_text("root:x:0:0", "utf-8")


def _nothing(path: Path) -> None:
    assert not path.exists()


KINDS = [_pipe, _device, _large, _text, _nothing, Path.mkdir]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("key", FILES)
def test_a_file_that_cannot_be_used_neither_stops_the_broker_nor_is_described(
    tmp_path: Path, make: Callable[[Path], None], key: str
) -> None:
    path = tmp_path / "file.pem"
    make(path)
    others = f"&certfile={tmp_path}/other.pem" if key == "keyfile" else ""
    with RunningServer() as running:
        shovel(
            running,
            src_uri=f"amqps://localhost:1?{key}={path}{others}",
            src_queue="q",
            dest_uri="amqp://",
            dest_queue="d",
        )
        running.until(lambda server: any(one.reason for one in server.shovels))
        reason = states(running)[0][1]
        with Client(running.port).open() as client:
            client.declare("served", durable=True)
    assert reason == "cannot connect to amqps://localhost:1: its TLS files cannot be used"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_reading_has_a_limit_of_time_and_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a file of a network does not answer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(link_tls, "_require_regular", lambda uri: None)
    monkeypatch.setattr(link_tls, "_stuck", set())

    async def play() -> list[str]:
        reasons = []
        for _ in range(link_tls.STUCK_MAX + 1):
            with pytest.raises(UnusableFiles) as caught:
                await read_tls_context(uri(f"amqps://host?cacertfile={pipe}"), timeout_s=0.05)
            reasons.append(str(caught.value))
        return reasons

    *late, refused = asyncio.run(play())
    assert set(late) == {"reading its TLS files takes longer than 0.05 s"}
    assert refused == "earlier reads of TLS files have not ended"
    # The readers of a pipe end when a writer has come and gone.
    for thread in link_tls._stuck:
        while thread.is_alive():
            # Without a wait for a reader: the last one may be about to end.
            with contextlib.suppress(OSError):
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            thread.join(0.05)


def test_the_context_is_that_of_the_files(tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    files = {name: tmp_path / f"{name}.pem" for name in FILES}
    authority.cert_pem.write_to_path(files["cacertfile"])
    own = authority.issue_cert("client")
    own.private_key_pem.write_to_path(files["keyfile"])
    own.cert_chain_pems[0].write_to_path(files["certfile"])
    query = "&".join(f"{name}={path}" for name, path in files.items())
    context = asyncio.run(read_tls_context(uri(f"amqps://host?{query}")))
    assert len(context.get_ca_certs()) == 1
