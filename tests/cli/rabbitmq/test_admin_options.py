from __future__ import annotations

import base64
import contextlib
import io
from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq import rabbitmqadmin
from amqp_broker.cli.rabbitmq.admin_options import OPTIONS, Line, from_uri, understand
from amqp_broker.cli.rabbitmq.rabbitmqadmin import VERBS
from amqp_broker.cli.rabbitmq.words import Misuse
from tests.cli.canned import canned


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_configuration_file_has_the_address(home: Path) -> None:
    with canned({"GET /api/vhosts?columns=name,messages": [{"name": "/"}]}) as api:
        (home / ".rabbitmqadmin.conf").write_text(
            f"[there]\nhostname = {api.place.host}\nport = {api.place.port}\nusername = u\npassword = p\nssl = False\n",
            "utf-8",
        )
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            assert rabbitmqadmin.main(["-N", "there", "-f", "bash", "list", "vhosts"]) == 0
        assert output.getvalue() == "/\n"
        assert api.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"u:p").decode()
        assert rabbitmqadmin.main(["-N", "elsewhere", "list", "vhosts"]) == 1


def test_a_uri_has_address_and_user() -> None:
    assert from_uri("https://u%40:p@host") == {
        "port": "15671",
        "ssl": "true",
        "host": "host",
        "username": "u@",
        "password": "p",
    }
    assert from_uri("http://host:1")["port"] == "1"
    assert from_uri("http://host:1/prefix/") == {"host": "host", "port": "1", "path_prefix": "/prefix"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("list queues -V v", Line({"vhost": "v"}, ["list", "queues"], {})),
        ("list queues --user u --use-tls", Line({"username": "u", "ssl": "true"}, ["list", "queues"], {})),
        ("declare user name=u --password=p", Line({"password": "p"}, ["declare", "user"], {"name": "u"})),
        ("users declare --name u --password p", Line({}, ["declare", "users"], {"name": "u", "password": "p"})),
        ("users declare --name u -p p", Line({"password": "p"}, ["declare", "users"], {"name": "u"})),
        ("delete queue --name q --idempotently", Line({}, ["delete", "queue"], {"name": "q", "idempotently": "true"})),
    ],
)
def test_options_of_the_connection_and_of_the_object_are_distinguished(words: str, line: Line) -> None:
    assert understand(words.split(), ("list", "declare", "delete")) == line


def test_option_names_are_unique() -> None:
    names = [name for option in OPTIONS for name in (option.name, *option.also, *option.letters)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--user=u", "--pass", "p", "list", "queues"], {"username": "u", "password": "p"}),
        (["--request", "3", "--sort-r", "list", "queues"], {"request_timeout": "3", "sort_reverse": "true"}),
        (["declare", "queue", "name=q", "--vh", "v"], {"vhost": "v"}),
    ],
)
def test_an_option_of_v1_may_be_abbreviated(words: list[str], options: dict[str, str]) -> None:
    assert understand(words, VERBS).options == options


def test_an_abbreviation_of_several_options_is_refused() -> None:
    with pytest.raises(Misuse, match="no such option: --ssl-c"):
        understand(["--ssl-c", "file", "list", "queues"], VERBS)
