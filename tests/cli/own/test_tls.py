from __future__ import annotations

import re
import ssl
from pathlib import Path

from compat.waiting import wait_until
from tests.cli.program import run, serving
from tests.client import Client

FILES = {
    "ca_certificate.pem",
    "ca_key.pem",
    "server_certificate.pem",
    "server_key.pem",
    "client_certificate.pem",
    "client_key.pem",
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def log_in(port: int, folder: Path) -> None:
    """Open a connection over TLS with the authority and the client certificate in the folder."""
    context = ssl.create_default_context(cafile=str(folder / "ca_certificate.pem"))
    context.load_cert_chain(folder / "client_certificate.pem", folder / "client_key.pem")
    client = Client(port)
    client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    client.open().close()


def test_certificates_are_created_without_a_broker_and_work_for_one(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    done = run("tls", str(folder), "--host", "broker.example.com")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(folder) == FILES
    assert all(str(folder / name) in done.stdout for name in FILES - {"ca_key.pem"})
    found = re.search("amqp-broker serve (.*)", done.stdout)
    assert found is not None
    with serving(tmp_path, *found[1].split()) as broker:
        log_in(broker.ports["amqps"], folder)
        broker.client().open().close()


def test_valid_certificates_are_kept(tmp_path: Path) -> None:
    run("tls", str(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    run("tls", str(tmp_path))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_invalid_host_is_refused(tmp_path: Path) -> None:
    done = run("tls", str(tmp_path), "--host", "a b")
    assert (done.returncode, done.stderr) == (
        78,
        "amqp-broker: 'a b' is not a valid host name for a certificate.\n",
    )


def test_a_broker_creates_certificates_and_logs_how_to_connect(tmp_path: Path) -> None:
    data = tmp_path / "data"
    options = ("--tls", "auto", "--data-dir", str(data))
    with serving(tmp_path, *options, AMQP_BROKER_EPHEMERAL="false") as broker:
        wait_until(lambda: "Server startup complete" in broker.output)
        log_in(broker.ports["amqps"], data / "tls")
        assert f"connect to amqps://localhost:{broker.ports['amqps']} and trust '{data}/tls/ca_certificate.pem'" in (
            broker.output
        )
        assert re.search(r"started TLS \(SSL\) listener on .*:" + str(broker.ports["amqps"]), broker.output)
    authority = (data / "tls" / "ca_certificate.pem").read_bytes()
    again = tmp_path / "again"
    again.mkdir()
    with serving(again, *options, AMQP_BROKER_EPHEMERAL="false") as broker:
        log_in(broker.ports["amqps"], data / "tls")
    assert (data / "tls" / "ca_certificate.pem").read_bytes() == authority


def test_an_ephemeral_broker_keeps_its_certificates_in_the_cache(tmp_path: Path) -> None:
    with serving(tmp_path, "--tls", "auto", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path)) as broker:
        [folder] = tmp_path.rglob("tls")
        assert names(folder) == FILES
        log_in(broker.ports["amqps"], folder)


def test_an_unusable_certificate_is_reported_with_an_exit_code(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    done = run("serve", "--port", "0", "--tls-cert-file", str(missing))
    assert done.returncode == 66
    assert done.stderr == f"amqp-broker: cannot read '{missing}': No such file or directory.\n"
