from __future__ import annotations

import json

import pytest

from tests.cli.canned import Canned, canned


def requests(api: Canned) -> list[str]:
    return [request for request, _ in api.changes()]


def test_limits_of_a_vhost_are_replaced_and_cleared_together() -> None:
    answers = {
        "PUT /api/parameters/vhost-limits/%2F/limits": 204,
        "DELETE /api/parameters/vhost-limits/%2F/limits": 204,
        "GET /api/vhost-limits/%2F": [{"vhost": "/", "value": {"max-queues": 1}}],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl set_vhost_limits '{\"max-queues\": 1}'").exit_code == 0
        body = {"component": "vhost-limits", "vhost": "/", "name": "limits", "value": {"max-queues": 1}}
        assert api.changes() == [("PUT /api/parameters/vhost-limits/%2F/limits", body)]
        assert api.run("rabbitmqctl clear_vhost_limits").exit_code == 0
        assert requests(api)[1:] == ["DELETE /api/parameters/vhost-limits/%2F/limits"]
        done = api.run("rabbitmqctl set_vhost_limits bogus")
        assert (done.exit_code, done.complaint) == (
            69,
            'Error:\nCould not parse JSON document: {error,{failed_to_decode_json,<<"bogus">>}}\n',
        )


def test_limits_are_printed_as_json_or_as_an_empty_line() -> None:
    answers = {
        "GET /api/vhost-limits/v": [{"vhost": "v", "value": {"max-queues": 1}}],
        "GET /api/vhost-limits/%2F": [],
        "GET /api/user-limits/guest": [],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl list_vhost_limits -p v").output == (
            'Listing limits for vhost "v" ...\n{"max-queues":1}\n'
        )
        assert api.run("rabbitmqctl list_vhost_limits").output == 'Listing limits for vhost "/" ...\n\n'
        assert api.run("rabbitmqctl list_user_limits").output == 'Listing limits for user "guest" ...\n{}\n'


def test_the_limits_of_all_are_a_table() -> None:
    answers = {
        "GET /api/user-limits": [{"user": "u", "value": {"max-channels": 2}}],
        "GET /api/vhost-limits": [{"vhost": "v", "value": {"max-queues": 1}}],
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl list_vhost_limits --global").output == (
            'Listing limits for all vhosts ...\nvhost\tlimits\nv\t{"max-queues":1}\n'
        )
        assert api.run("rabbitmqctl list_user_limits --global").output == (
            'Listing limits for all users ...\nuser\tlimits\nu\t{"max-channels":2}\n'
        )


def test_one_limit_of_a_user_is_cleared() -> None:
    answers = {
        "GET /api/user-limits/u": [{"user": "u", "value": {"max-channels": 2, "max-connections": 1}}],
        "DELETE /api/user-limits/u/max-channels": 204,
    }
    with canned(answers) as api:
        assert api.run("rabbitmqctl clear_user_limits u max-channels").exit_code == 0
        assert requests(api) == ["DELETE /api/user-limits/u/max-channels"]


def test_limits_of_an_unknown_user_are_an_error() -> None:
    with canned() as api:
        done = api.run("rabbitmqctl set_user_limits nobody '{\"max-channels\": 2}'")
    assert (done.exit_code, done.complaint) == (69, 'Error:\n{:no_such_user, "nobody"}\n')


@pytest.mark.parametrize(("name", "value"), [("bogus", 1), ("max-connections", "many")])
def test_a_wrong_limit_of_a_user_is_refused_before_the_first_is_set(name: str, value: object) -> None:
    answers = {f"PUT /api/user-limits/u/{name}": (400, {"reason": "no"}), "PUT /api/user-limits/u/max-channels": 204}
    with canned({**answers, "GET /api/users/u": {}}) as api:
        done = api.run(f"rabbitmqctl set_user_limits u '{json.dumps({'max-channels': 2, name: value})}'")
        assert requests(api) == [f"PUT /api/user-limits/u/{name}"]
    assert (done.exit_code, done.complaint) == (69, "Error:\nno\n")


def test_the_first_line_names_the_limits_that_are_cleared() -> None:
    with canned({"GET /api/user-limits/u": []}) as api:
        for wanted, named in (("all", "all limits"), ("max-channels", '"max-channels" limit')):
            done = api.run(f"rabbitmqctl clear_user_limits u {wanted}")
            assert done.output == f'Clearing {named} for user "u" ...\n'
