"""An oracle is the system's package, or one in the cache: compat/oracles/oracle.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.oracles import oracle
from compat.oracles.__main__ import main
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import LIB, ORACLES, Oracle, version_in

OLD = ORACLES["4.0"]
NEW = ORACLES["4.3"]


def install(root: Path, *versions: str) -> None:
    for version in versions:
        (root / LIB / f"rabbitmq_server-{version}").mkdir(parents=True)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a system and a cache that are empty, of a user who seems to be root."""
    monkeypatch.setattr(oracle, "SYSTEM", tmp_path / "system")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "system"


def test_the_package_of_the_system_is_used_if_it_has_the_version(system: Path) -> None:
    install(system, "4.0.9")
    install(OLD.cached_root, "4.0.5")
    assert (OLD.installed(), OLD.version) == (system, "4.0.9")
    assert OLD.have() == system


def test_another_version_comes_from_the_cache(system: Path) -> None:
    install(system, "3.10.8")
    install(OLD.cached_root, "4.0.5")
    assert (OLD.installed(), OLD.version) == (OLD.cached_root, "4.0.5")


def test_only_root_can_use_the_cache(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(OLD.cached_root, "4.0.5")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert OLD.installed() is None
    with pytest.raises(Unavailable, match=r"^RabbitMQ 4\.3 cannot be had: only root can install another release"):
        NEW.have()


@pytest.mark.usefixtures("system")
def test_a_missing_oracle_is_reported_with_the_reason() -> None:
    assert (NEW.installed(), NEW.version) == (None, "")
    with pytest.raises(Unavailable, match=r"^RabbitMQ 4\.3 cannot be had: cannot run apt-get: No such file"):
        NEW.have()


@pytest.mark.usefixtures("system")
def test_a_release_that_has_moved_on_is_no_oracle() -> None:
    install(NEW.cached_root, "4.4.0")
    assert NEW.installed() is None
    with pytest.raises(Unavailable, match=r"^RabbitMQ 4\.3 cannot be had: Debian sid has RabbitMQ 4\.4\.0$"):
        NEW.have()


def test_a_minor_version_is_compared_as_a_whole(system: Path) -> None:
    install(system, "4.30.1")
    assert NEW.installed() is None


def test_the_newest_version_of_a_root_counts(tmp_path: Path) -> None:
    install(tmp_path, "4.3.6", "4.3.7")
    assert version_in(tmp_path) == "4.3.7"
    assert version_in(tmp_path / "nowhere") == ""


def test_the_cache_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Oracle("4.0", "trixie").cached_root == tmp_path / ".cache" / "amqp-broker-oracles" / "trixie"


def test_all_oracles_are_listed_with_their_exact_versions(
    system: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(system, "3.10.8")
    install(OLD.cached_root, "4.0.5")
    monkeypatch.setattr("sys.argv", ["oracles", *ORACLES])
    assert main() == 69
    told = capsys.readouterr()
    assert told.out == f"RabbitMQ 3.10.8 is in {system}\nRabbitMQ 4.0.5 is in {OLD.cached_root}\n"
    assert told.err == "RabbitMQ 4.3 cannot be had: cannot run apt-get: No such file or directory\n"
    monkeypatch.setattr("sys.argv", ["oracles", "3.10", "4.0"])
    assert main() == 0
