from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings, SettingsError
from tests.running import RunningServer


def users(server: Server) -> dict[str, list[str]]:
    return {name: list(user.permissions) for name, user in server.broker.users.items()}


def test_the_first_vhost_brings_the_default_users_of_the_settings() -> None:
    with RunningServer(default_users='{"anna": {"password": "x"}}') as running:
        assert running.ask(users) == {"guest": ["/"], "anna": ["/"]}


def test_the_first_vhost_has_the_default_limits_and_policies_of_the_settings() -> None:
    with RunningServer(default_limits='{"a": {"max_queues": 5}}', default_policies='{"b": {"expires": 7}}') as running:
        vhost = running.ask(lambda server: server.broker.vhosts["/"])
        assert vhost.limits.given == {"max-queues": 5}
        assert [policy.definition for policy in vhost.operator_policies] == [{"expires": 7}]


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("default_users", {"guest": {}}, "the user 'guest' is among default_users, too"),
        ("default_policies", {"a": {"colour": 1}}, "are not recognised policy settings"),
    ],
)
def test_defaults_with_which_rabbitmq_does_not_start_are_refused(setting: str, value: object, said: str) -> None:
    written: dict[str, Any] = {setting: json.dumps(value)}
    with pytest.raises(SettingsError, match="the default vhost and user cannot be created: ") as caught:
        Server(Settings(ephemeral=True, **written))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"default_user": "me", "default_pass": "x"}, "there is no user 'me'"),
        ({"default_pass": "x"}, "the password of 'guest' is another one"),
        ({"default_vhost": "shop"}, "there is no vhost 'shop'"),
        ({"default_user": "me", "default_vhost": "shop"}, "there is no user 'me', there is no vhost 'shop'"),
    ],
)
def test_defaults_that_a_former_start_has_made_ineffective_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, Any], reason: str
) -> None:
    with RunningServer(data_dir=str(tmp_path / "data"), ephemeral=False):
        pass
    with RunningServer(data_dir=str(tmp_path / "data"), ephemeral=False, **settings):
        (said,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert f"are ignored, as in RabbitMQ: {reason}; change that" in said


def test_defaults_that_the_data_folder_has_are_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mine: dict[str, Any] = {"default_user": "me", "default_pass": "mine", "default_vhost": "shop"}
    for settings in (mine, mine, {}):
        with RunningServer(data_dir=str(tmp_path / "data"), ephemeral=False, **settings):
            pass
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
