from __future__ import annotations

from tests.cli.canned import canned

USER = {"name": "u", "tags": [], "password_hash": "aGFzaA==", "hashing_algorithm": "sha"}


def test_a_permission_requires_the_user_before_the_vhost() -> None:
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


def test_permissions_of_a_missing_user_or_vhost_are_cleared_already_in_rabbitmq_4() -> None:
    """Seen at RabbitMQ 4.0.5 and 4.3.6; 3.10.8 refuses it."""
    for command in ("clear_permissions nobody", "clear_topic_permissions nobody"):
        with canned() as api:
            assert api.run(f"rabbitmqctl {command}").exit_code == 0
        with canned() as api:
            api.answers["GET /api/users/nobody"] = USER
            assert api.run(f"rabbitmqctl {command} -p nowhere").exit_code == 0
