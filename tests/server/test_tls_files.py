"""The files of certificates and keys, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqp_broker.exit_codes import EX_CONFIG, EX_NOINPUT
from amqp_broker.server.tls import TlsError, listener, own_folder, server_context
from amqp_broker.settings.settings import Settings
from compat.certificates import Issued, Issuer, encrypted


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def served(issuer: Issuer) -> Issued:
    return issuer.server()


def problem(**settings: Any) -> TlsError:
    with pytest.raises(TlsError) as caught:
        listener(Settings(**settings))
    return caught.value


def test_invalid_files_are_named(tmp_path: Path, issuer: Issuer, served: Issued) -> None:
    cert, key, other = str(served.certificate), str(served.key), str(issuer.client("anna").key)
    secret = str(encrypted(served.key, "sesame"))
    nothing, text = str(tmp_path / "nothing.pem"), tmp_path / "text.pem"
    text.write_text("hello", "utf-8")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "utf-8")
    cases: list[tuple[dict[str, object], str, int]] = [
        ({"tls_cert_file": nothing}, f"cannot read '{nothing}': No such file or directory", EX_NOINPUT),
        ({"tls_key_file": nothing}, f"cannot read '{nothing}': No such file or directory", EX_NOINPUT),
        ({"tls_ca_file": nothing}, f"cannot read '{nothing}': No such file or directory", EX_NOINPUT),
        ({"tls_cert_file": str(tmp_path)}, f"cannot read '{tmp_path}': Is a directory", EX_NOINPUT),
        ({"tls_cert_file": str(text)}, f"'{text}' is not a certificate in PEM format", EX_CONFIG),
        ({"tls_key_file": str(text)}, f"'{text}' is not a key in PEM format", EX_CONFIG),
        ({"tls_ca_file": str(text)}, f"'{text}' is not a certificate in PEM format", EX_CONFIG),
        ({"tls_ca_file": str(broken)}, f"'{broken}' has a certificate that cannot be read", EX_CONFIG),
        ({"tls_key_file": ""}, f"'{cert}' is not a key in PEM format", EX_CONFIG),
        ({"tls_key_file": other}, f"the key '{other}' is not that of the certificate '{cert}'", EX_CONFIG),
        ({"tls_key_file": secret}, f"the key '{secret}' is encrypted: set tls_key_password", EX_CONFIG),
        (
            {"tls_key_file": secret, "tls_key_password": "wrong"},
            f"tls_key_password does not open the key '{secret}'",
            EX_CONFIG,
        ),
        (
            {"tls_require_peer_cert": True},
            "tls_require_peer_cert requires tls_verify_peer: otherwise the certificate is not checked",
            EX_CONFIG,
        ),
        (
            {"tls_verify_peer": True},
            "tls_verify_peer requires tls_ca_file, the authorities that sign certificates of clients",
            EX_CONFIG,
        ),
    ]
    for given, sentence, code in cases:
        error = problem(**{"tls_cert_file": cert, "tls_key_file": key, **given})
        assert (str(error), error.exit_code) == (sentence, code)


def test_a_tls_port_requires_a_certificate() -> None:
    assert str(problem(tls_port=5671)) == (
        "TLS requires a certificate: set tls_cert_file and tls_key_file, or tls to 'auto'"
    )


def test_encrypted_keys_and_combined_files_work(tmp_path: Path, served: Issued) -> None:
    server_context(str(served.certificate), str(encrypted(served.key, "sesame")), key_password="sesame")
    both = tmp_path / "both.pem"
    both.write_bytes(served.certificate.read_bytes() + served.key.read_bytes())
    server_context(str(both))


def test_own_certificates_are_kept_in_the_data_folder_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert own_folder(Settings(data_dir=str(tmp_path / "data"))) == tmp_path / "data" / "tls"
    assert own_folder(Settings(ephemeral=True)).name == "tls"
    assert own_folder(Settings(ephemeral=True)).parent.name == "amqp-broker"
