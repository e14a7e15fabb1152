from __future__ import annotations

import base64
import contextlib
import io
from pathlib import Path

import pytest

from amqp_broker.cli import admin
from amqp_broker.cli.admin_options import completion, from_uri, help_text
from tests.cli.canned import canned


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_configuration_file_says_where_to_connect(home: Path) -> None:
    with canned({"GET /api/vhosts?columns=name,messages": [{"name": "/"}]}) as api:
        (home / ".rabbitmqadmin.conf").write_text(
            f"[there]\nhostname = {api.place.host}\nport = {api.place.port}\nusername = u\npassword = p\nssl = False\n"
        )
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            assert admin.main(["-N", "there", "-f", "bash", "list", "vhosts"]) == 0
        assert output.getvalue() == "/\n"
        assert api.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"u:p").decode()
        assert admin.main(["-N", "elsewhere", "list", "vhosts"]) == 1


def test_a_uri_says_where_and_who() -> None:
    assert from_uri("https://u%40:p@host") == {
        "port": "15671",
        "ssl": "true",
        "host": "host",
        "username": "u@",
        "password": "p",
    }
    assert from_uri("http://host:1")["port"] == "1"


def test_help_names_what_can_be_declared() -> None:
    assert "operator_policy" in help_text()
    assert "complete -F" in completion()
