from __future__ import annotations

import json
from dataclasses import replace

from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.default_users import DefaultUsers
from tests.peer import Lab

ANNA = {"password": "secret", "tags": "monitoring, management", "vhost_pattern": "^v", "configure": "^a"}


def broker(users: object) -> Broker:
    broker = Lab().broker
    broker.settings = replace(broker.settings, default_users=json.dumps(users))
    broker.events.listen(DefaultUsers(broker).on_event)
    return broker


def test_a_new_vhost_brings_the_users_whose_pattern_matches() -> None:
    here = broker({"anna": ANNA, "bert": {"vhost_pattern": "^w"}})
    here.add_vhost("v1")
    anna = here.users["anna"]
    assert anna.tags == ("monitoring", "management")
    assert anna.permissions == {"v1": Permission("^a", ".*", ".*")}
    assert "bert" not in here.users


def test_a_user_without_a_pattern_is_in_every_new_vhost() -> None:
    here = broker({"anna": {}})
    here.add_vhost("v")
    here.add_vhost("w")
    assert set(here.users["anna"].permissions) == {"v", "w"}


def test_a_user_who_exists_keeps_password_and_tags() -> None:
    here = broker({"anna": ANNA})
    here.users.add("anna", "other", tags=("policymaker",))
    before = here.users["anna"].password_hash
    here.add_vhost("v1")
    anna = here.users["anna"]
    assert (anna.password_hash, anna.tags, set(anna.permissions)) == (before, ("policymaker",), {"v1"})


def test_a_user_without_a_password_cannot_log_in() -> None:
    here = broker({"anna": {"tags": "monitoring"}})
    here.add_vhost("v")
    assert here.users["anna"].password_hash == b""
