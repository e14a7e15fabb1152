"""Requests and output of rabbitmqadmin; compat/ctl compares the output with that of v1 at a RabbitMQ."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.cli.rabbitmq import rabbitmqadmin
from tests.cli.canned import Canned, canned


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run(api: Canned, *words: str) -> tuple[str, str, int]:
    output, complaint = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaint):
        code = rabbitmqadmin.main(["-H", api.place.host, "-P", str(api.place.port), *words])
    return output.getvalue(), complaint.getvalue(), code


QUEUE: dict[str, Any] = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False}


@pytest.mark.parametrize(
    ("words", "request_", "body"),
    [
        (
            ["declare", "queue", "name=q", "durable=true", 'arguments={"x-max-length":3}'],
            "PUT /api/queues/%2F/q",
            {**QUEUE, "arguments": {"x-max-length": 3}},
        ),
        (
            ["declare", "queue", "--name", "q", "--type", "quorum", "--durable", "true"],
            "PUT /api/queues/%2F/q",
            {**QUEUE, "arguments": {"x-queue-type": "quorum"}},
        ),
        (
            ["queues", "declare", "--name", "q"],
            "PUT /api/queues/%2F/q",
            {**QUEUE, "arguments": {}},
        ),
        (
            [
                "--vhost",
                "v",
                "declare",
                "permissions",
                "--user",
                "u",
                "--configure",
                "a",
                "--read",
                "b",
                "--write",
                "c",
            ],
            "PUT /api/permissions/v/u",
            {"vhost": "v", "user": "u", "configure": "a", "read": "b", "write": "c"},
        ),
        (
            ["declare", "user", "--name", "u", "--password", "p", "--tags", "administrator"],
            "PUT /api/users/u",
            {"name": "u", "password": "p", "tags": "administrator", "vhost": "/"},
        ),
        (
            ["declare", "policy", "name=p", "pattern=^q", 'definition={"a":1}', "apply-to=queues", "priority=2"],
            "PUT /api/policies/%2F/p",
            {"name": "p", "pattern": "^q", "definition": {"a": 1}, "apply-to": "queues", "priority": 2, "vhost": "/"},
        ),
        (["delete", "queue", "name=q"], "DELETE /api/queues/%2F/q", None),
        (["purge", "queue", "--name", "q"], "DELETE /api/queues/%2F/q/contents", None),
        (["close", "connection", "name=a -> b"], "DELETE /api/connections/a%20-%3E%20b", None),
        (
            ["delete", "binding", "source=s", "destination_type=queue", "destination=d", "properties_key=k"],
            "DELETE /api/bindings/%2F/e/s/q/d/k",
            None,
        ),
    ],
)
def test_commands_are_sent_as_requests(words: list[str], request_: str, body: Any) -> None:
    with canned({request_: 204}) as api:
        assert run(api, *words)[1:] == ("", 0)
        assert api.asked == [(request_, body)]
        assert api.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"guest:guest").decode()


def test_a_password_of_the_connection_is_not_that_of_a_new_user() -> None:
    with canned({"PUT /api/users/u": 201}) as api:
        run(api, "--username=root", "declare", "user", "--password=secret", "name=u", "password=p", "tags=")
        assert api.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"root:secret").decode()
        assert api.asked[0][1]["password"] == "p"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "Action not specified"),
        (["bogus"], "Action bogus not understood"),
        (["list", "bogus"], "Don't know how to list bogus"),
        (["declare", "queue"], 'mandatory argument "name" is required'),
        (["declare", "queue", "x"], 'Argument "x" not in the name=value format'),
        (["declare", "queue", "name=q", "bogus=1"], 'Argument "bogus" is not recognised'),
        (["-f", "bogus", "list", "queues"], "Format bogus not recognised"),
        (["--bogus"], "no such option: --bogus"),
    ],
)
def test_an_invalid_command_line_is_reported(words: list[str], reason: str) -> None:
    with canned() as api:
        assert run(api, *words) == ("", f"\nERROR: {reason}\n\nrabbitmqadmin --help for help\n\n", 1)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (404, "Not found: /api/queues/%2F/q"),
        (401, "Access refused: /api/queues/%2F/q"),
        ((400, {"reason": "no"}), "no"),
    ],
)
def test_a_refusal_is_reported(answer: Any, complaint: str) -> None:
    with canned({"DELETE /api/queues/%2F/q": answer}) as api:
        assert run(api, "delete", "queue", "name=q") == ("", f"*** {complaint}\n\n", 1)


def test_a_missing_object_may_be_deleted_idempotently() -> None:
    with canned() as api:
        assert run(api, "delete", "queue", "--name", "q", "--idempotently")[2] == 0


def test_messages_are_published_and_got(tmp_path: Path) -> None:
    message = {"payload": "aGk=", "payload_encoding": "base64", "routing_key": "q", "exchange": "", "message_count": 0}
    answers = {
        "POST /api/exchanges/%2F/amq.default/publish": {"routed": False},
        "POST /api/queues/%2F/q/get": [message],
    }
    with canned(answers) as api:
        assert run(api, "publish", "routing_key=q", "payload=hi")[0] == "Message published but NOT routed\n"
        assert api.asked[0][1]["payload"] == "hi"
        assert run(api, "get", "queue=q", f"payload_file={tmp_path / 'payload'}")[2] == 0
        assert (tmp_path / "payload").read_bytes() == b"hi"
        assert run(api, "get", "messages", "--queue", "q", "--count", "5", "--ack-mode", "ack_requeue_false")[2] == 0
        assert api.asked[-1][1]["ackmode"] == "ack_requeue_false"


def test_definitions_are_exported_to_and_imported_from_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "definitions.json")
    with canned({"GET /api/definitions": {"users": []}, "POST /api/definitions": 204}) as api:
        assert run(api, "-q", "export", path) == ("", "", 0)
        assert json.loads(Path(path).read_text("utf-8")) == {"users": []}
        assert run(api, "definitions", "import", "--file", path)[2] == 0
        assert api.asked[-1] == ("POST /api/definitions", {"users": []})


def test_a_health_check_fails_with_the_brokers_reason() -> None:
    target = "/api/health/checks/port-listener/5671"
    with canned({f"GET {target}": (503, {"reason": "no listener"})}) as api:
        assert run(api, "health_check", "port_listener", "--port", "5671")[2] == 1
        assert run(api, "health_check", "bogus")[2] == 1
        run(api, "health_check", "protocol_listener", "--protocol", "amqp/tls?")
        assert api.asked[-1][0] == "GET /api/health/checks/protocol-listener/amqp%2Ftls%3F"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("-P abc list queues", "--port is 'abc', which is not a number"),
        ("-t abc list queues", "--request-timeout is 'abc', which is not a number"),
        ("-U http://[ list queues", "'http://[' is not a URI"),
        ("-U http://h:abc list queues", "'http://h:abc' is not a URI"),
        ("-c /dev/null/x list queues", "Could not read config file '/dev/null/x'"),
        ("--ssl --ssl-ca-cert-file no.pem list queues", "Could not read 'no.pem' (--ssl-ca-cert-file): No such file"),
        ("--ssl --ssl-cert-file no.pem list queues", "Could not read 'no.pem' (--ssl-cert-file): No such file"),
        ("--ssl --ssl-cert-file /dev/null list queues", "Could not read '/dev/null' (--ssl-cert-file): [SSL]"),
        ("declare queue name=q durable=maybe", "durable is 'maybe', which is neither true nor false"),
    ],
)
def test_an_invalid_option_is_reported_in_one_sentence(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rabbitmqadmin.main(line.split()) == 1
    assert f"ERROR: {told}" in capsys.readouterr().err


def test_a_configuration_file_that_is_not_text_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"[default]\nhost = \xff\n")
    assert rabbitmqadmin.main(["-c", str(path), "list", "queues"]) == 1
    assert f"Could not read config file '{path}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ("-H 127.0.0.1 -P 1", "http://127.0.0.1:1"),
        ("-H ::1 -P 1", "http://[::1]:1"),
        ("-P 1 --ssl", "https://localhost:1"),
    ],
)
def test_an_address_without_an_answer_is_named(options: str, address: str) -> None:
    complaint = io.StringIO()
    with contextlib.redirect_stderr(complaint):
        assert rabbitmqadmin.main([*options.split(), "list", "queues"]) == 1
    assert complaint.getvalue().startswith(f"*** Could not connect to {address}: ")
