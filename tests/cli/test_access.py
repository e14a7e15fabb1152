from __future__ import annotations

import base64
import hashlib

import pytest

from tests.cli.canned import Canned, canned

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
def test_what_is_not_changed_of_a_user_is_kept(line: str, body: object) -> None:
    with canned({"GET /api/users/alice": USER, "PUT /api/users/alice": 204}) as api:
        assert api.run(f"rabbitmqctl {line}").exit_code == 0
        assert api.changes() == [("PUT /api/users/alice", body)]


@pytest.mark.parametrize("line", ["change_password nobody x", "set_user_tags nobody x", "delete_user nobody"])
def test_an_unknown_user_is_67(line: str) -> None:
    with canned() as api:
        done = api.run(f"rabbitmqctl {line}")
    assert (done.exit_code, done.complaint) == (67, 'Error:\nUser "nobody" does not exist\n')


def test_of_a_permission_the_user_is_looked_for_first() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl set_permissions u a b c").complaint == "Error:\nUser u does not exist\n"
        api.answers["GET /api/users/u"] = USER
        done = api.run("rabbitmqctl set_permissions -p v u a b c")
        assert (done.exit_code, done.complaint) == (69, "Error:\nVirtual host v does not exist\n")
        api.answers["PUT /api/permissions/v/u"] = 201
        assert api.run("rabbitmqctl set_permissions -p v u a b c").exit_code == 0
        assert api.changes()[-1] == ("PUT /api/permissions/v/u", {"configure": "a", "write": "b", "read": "c"})


def test_permissions_can_be_set_in_all_vhosts() -> None:
    answers = {
        "GET /api/vhosts": [{"name": "/"}, {"name": "v"}],
        "PUT /api/permissions/%2F/u": 201,
        "PUT /api/permissions/v/u": 201,
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl set_permissions_globally u a b c").exit_code == 0
        assert len(api.changes()) == 2


def requests(api: Canned) -> list[str]:
    return [request for request, _ in api.changes()]


def test_limits_are_set_and_cleared_one_by_one() -> None:
    answers = {
        "PUT /api/vhost-limits/%2F/max-queues": 204,
        "DELETE /api/vhost-limits/%2F/max-queues": 204,
        "GET /api/vhost-limits/%2F": [{"vhost": "/", "value": {"max-queues": 1}}],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl set_vhost_limits '{\"max-queues\": 1}'").exit_code == 0
        assert api.changes() == [("PUT /api/vhost-limits/%2F/max-queues", {"value": 1})]
        assert api.run("rabbitmqctl clear_vhost_limits").exit_code == 0
        assert requests(api)[1:] == ["DELETE /api/vhost-limits/%2F/max-queues"]
        done = api.run("rabbitmqctl set_vhost_limits bogus")
        assert (done.exit_code, done.complaint) == (69, "Error:\nJSON decoding error. Reason: badarg\n")


def test_a_vhost_may_have_a_description_tags_and_a_type_of_queues() -> None:
    with canned({"PUT /api/vhosts/v": 201}) as api:
        api.run("rabbitmqctl add_vhost v --description 'd e' --tags a,b --default-queue-type quorum")
        assert api.changes()[0][1] == {"description": "d e", "tags": "a,b", "default_queue_type": "quorum"}


def test_a_trace_is_started_and_stopped() -> None:
    with canned({"PUT /_broker/trace/v": 204, "DELETE /_broker/trace/v": 204}) as api:
        done = api.run("rabbitmqctl trace_on -p v")
        assert done.output == 'Starting tracing for vhost "v" ...\nTrace enabled for vhost v\n'
        assert api.run("rabbitmqctl -q trace_off -p v").output == "Trace disabled for vhost v\n"


def test_a_hash_is_that_of_the_password() -> None:
    with canned() as api:
        octets = base64.b64decode(api.run("rabbitmqctl hash_password abc").output)
    assert octets[4:] == hashlib.sha256(octets[:4] + b"abc").digest()
