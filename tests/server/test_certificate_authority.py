from __future__ import annotations

import os
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509

from amqp_broker.exit_codes import EX_CANTCREAT
from amqp_broker.server import certificate_authority
from amqp_broker.server.certificate_authority import VALID_MIN, Certificates, certificates
from amqp_broker.server.tls import TlsError, server_context


def contents(files: Certificates) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def hosts_of(files: Certificates) -> set[str]:
    names = read(files.server_certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}


def test_a_folder_gets_an_authority_and_its_certificates(tmp_path: Path) -> None:
    files = certificates(tmp_path / "new" / "tls")
    assert contents(files).keys() == {
        "ca_certificate.pem",
        "ca_key.pem",
        "server_certificate.pem",
        "server_key.pem",
        "client_certificate.pem",
        "client_key.pem",
    }
    server_context(
        str(files.server_certificate), str(files.server_key), ca_file=str(files.ca_certificate), verify_peer=True
    )
    ssl.create_default_context(cafile=str(files.ca_certificate)).load_cert_chain(
        files.client_certificate, files.client_key
    )
    for path in (files.server_certificate, files.client_certificate):
        read(path).verify_directly_issued_by(read(files.ca_certificate))


def test_only_the_owner_can_read_a_key(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = certificates(tmp_path / "tls")
    finally:
        os.umask(before)
    for path in files.folder.iterdir():
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o600 if path.name.endswith("key.pem") else 0o644), path


def test_the_certificate_has_all_names_of_the_machine_and_the_given_ones(tmp_path: Path) -> None:
    files = certificates(tmp_path, ("broker.example.com", "192.0.2.7", "localhost", "::", "0.0.0.0"))
    expected = {"localhost", "127.0.0.1", "::1", "broker.example.com", "192.0.2.7"}
    assert expected <= hosts_of(files) <= expected | {socket.gethostname()}


def test_the_client_certificate_names_the_user(tmp_path: Path) -> None:
    files = certificates(tmp_path, user="maria")
    assert read(files.client_certificate).subject.rfc4514_string() == "CN=maria,OU=client,O=amqp-broker"


def test_existing_certificates_are_reused(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    before = contents(files)
    assert contents(certificates(tmp_path)) == before
    assert contents(certificates(tmp_path, ("localhost", "127.0.0.1"))) == before


def changed(tmp_path: Path, **arguments: Any) -> set[str]:
    """Create certificates again; return the names of the replaced files."""
    before = contents(Certificates(tmp_path))
    after = contents(certificates(tmp_path, **arguments))
    return {name for name in after if after[name] != before.get(name)}


SERVER, CLIENT = {"server_certificate.pem", "server_key.pem"}, {"client_certificate.pem", "client_key.pem"}
EVERYTHING = SERVER | CLIENT | {"ca_certificate.pem", "ca_key.pem"}


def test_only_unsuitable_certificates_are_replaced(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    assert changed(tmp_path, hosts=("broker.example.com",)) == SERVER
    assert changed(tmp_path, user="maria") == CLIENT
    files.server_key.unlink()
    assert changed(tmp_path, user="maria") == SERVER
    files.client_certificate.write_text("cut", "utf-8")
    assert changed(tmp_path, user="maria") == CLIENT


@pytest.mark.parametrize("lost", ["ca_certificate.pem", "ca_key.pem"])
def test_a_lost_authority_replaces_all_certificates(tmp_path: Path, lost: str) -> None:
    certificates(tmp_path)
    (tmp_path / lost).unlink()
    assert changed(tmp_path) == EVERYTHING


def test_certificates_are_replaced_before_they_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = certificates(tmp_path)
    end = read(files.server_certificate).not_valid_after_utc
    assert timedelta(days=824) < end - datetime.now(UTC) <= timedelta(days=825)

    shift = timedelta(seconds=-1)
    later = SimpleNamespace(now=lambda tz: end - VALID_MIN + shift)
    monkeypatch.setattr(certificate_authority, "datetime", later)
    assert changed(tmp_path) == set()
    shift = timedelta(seconds=1)
    assert changed(tmp_path) == SERVER | CLIENT


def test_brokers_that_start_together_share_an_authority(tmp_path: Path) -> None:
    threads = [threading.Thread(target=certificates, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = Certificates(tmp_path)
    server_context(str(files.server_certificate), str(files.server_key))
    read(files.server_certificate).verify_directly_issued_by(read(files.ca_certificate))
    assert contents(files).keys() == EVERYTHING


@pytest.mark.parametrize("host", ["", "a b", "-a", "a..b", "x" * 254, "http://x/", "*"])
def test_an_invalid_host_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(TlsError, match="is not a valid host name for a certificate"):
        certificates(tmp_path, (host,))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    with pytest.raises(TlsError) as caught:
        certificates(file / "tls")
    assert str(caught.value) == f"cannot write certificates to '{file / 'tls'}': Not a directory"
    assert caught.value.exit_code == EX_CANTCREAT
