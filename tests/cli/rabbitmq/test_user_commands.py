from __future__ import annotations

import base64
import hashlib

import pytest

from tests.cli.canned import canned

USER = {"name": "alice", "tags": ["management"], "password_hash": "aGFzaA==", "hashing_algorithm": "sha"}


def test_a_user_is_added_once() -> None:
    with canned({"PUT /api/users/alice": 201}) as api:
        done = api.run("rabbitmqctl add_user alice pw")
        assert done.exit_code == 0
        assert done.output.startswith('Adding user "alice" ...\nDone. Don\'t forget to grant the user permissions')
        assert api.changes() == [("PUT /api/users/alice", {"password": "pw", "tags": ""})]
        api.answers["GET /api/users/alice"] = USER
        done = api.run("rabbitmqctl add_user alice pw")
        assert done == ('Adding user "alice" ...\n', 'Error:\nUser "alice" already exists\n', 70)
        assert len(api.changes()) == 1


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("change_password alice new", {"password": "new", "tags": ["management"]}),
        ("clear_password alice", {"password_hash": "", "tags": ["management"], "hashing_algorithm": "sha"}),
        (
            "set_user_tags alice a b",
            {"password_hash": "aGFzaA==", "tags": ["a", "b"], "hashing_algorithm": "sha"},
        ),
    ],
)
def test_changing_a_user_keeps_other_fields(line: str, body: object) -> None:
    with canned({"GET /api/users/alice": USER, "PUT /api/users/alice": 204}) as api:
        assert api.run(f"rabbitmqctl {line}").exit_code == 0
        assert api.changes() == [("PUT /api/users/alice", body)]


def test_the_new_tags_are_shown() -> None:
    with canned({"GET /api/users/alice": USER, "PUT /api/users/alice": 204}) as api:
        assert api.run("rabbitmqctl set_user_tags alice a b").output == 'Setting tags for user "alice" to [a, b] ...\n'


@pytest.mark.parametrize("line", ["change_password nobody x", "set_user_tags nobody x"])
def test_an_unknown_user_has_exit_code_67(line: str) -> None:
    with canned() as api:
        done = api.run(f"rabbitmqctl {line}")
    assert (done.exit_code, done.complaint) == (67, 'Error:\nUser "nobody" does not exist\n')


def test_a_missing_user_counts_as_deleted_since_rabbitmq_4() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl -q delete_user nobody") == ("", "", 0)
        api.version = "3.13.7"
        assert api.run("rabbitmqctl -q delete_user nobody") == ("", 'Error:\nUser "nobody" does not exist\n', 67)


def test_a_password_may_be_given_as_its_hash() -> None:
    with canned({"PUT /api/users/alice": 201}) as api:
        assert api.run("rabbitmqctl add_user alice aGFzaA== --pre-hashed-password").exit_code == 0
        assert api.changes() == [("PUT /api/users/alice", {"password_hash": "aGFzaA==", "tags": ""})]
        done = api.run("rabbitmqctl add_user alice pw --pre-hashed-password")
    assert done.exit_code == 65
    assert "Bad argument: Could not Base64 decode provided password hash value" in done.complaint


def test_a_hash_is_that_of_the_password() -> None:
    with canned() as api:
        octets = base64.b64decode(api.run("rabbitmqctl hash_password abc").output)
    assert octets[4:] == hashlib.sha256(octets[:4] + b"abc").digest()


def test_the_password_of_a_missing_user_cannot_be_cleared() -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6, which refuse `change_password` in other words."""
    with canned() as api:
        done = api.run("rabbitmqctl clear_password nobody")
        assert (done.exit_code, done.complaint) == (69, 'Error:\n{:no_such_user, "nobody"}\n')
