"""Monitoring clients on another machine find their fields in a container of the image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from prometheus_client.samples import Sample

from compat.monitoring.calls import CALLS, Call
from compat.monitoring.playing import missed
from compat.prometheus.boards import BOARDS, WITHOUT_DATA, samples, selected
from compat.prometheus.metrics import FORMS
from tests.container.image import Image
from tests.container.neighbour import ADDRESS, CannotLink, neighbour

EACH_CALL = [pytest.param(call, id=f"{client} {call.path}") for client, calls in CALLS.items() for call in calls]
PANELS = [(board, title) for board, panels in BOARDS.items() for title in panels]
# The image is as RabbitMQ 4.2, which still has the metric of this alert.
EMPTY = WITHOUT_DATA.keys() - {("Alerts", "RabbitmqFileDescriptorAlarm")}

PLAY = """
import json
from compat.monitoring.playing import answers, traffic
from compat.prometheus.metrics import FORMS, fetch, use

with traffic("amqp://{owner}@{address}:5672/"), use("amqp://{owner}@{address}:5672/"):
    answered = answers("http://{monitor}@{address}:15672")
    texts = {{form: fetch(f"http://{address}:15692{{path}}") for form, path in FORMS.items()}}
print(json.dumps([answered, texts]))
"""
# The rights of Datadog's user: it watches, and may publish to the queue of the aliveness test only.
MONITOR = (
    ("rabbitmqctl", "add_user", "watcher", "secret"),
    ("rabbitmqctl", "set_permissions", "-p", "/", "watcher", "^aliveness-test$", r"^amq\.default$", ".*"),
    ("rabbitmqctl", "set_user_tags", "watcher", "monitoring"),
)
OWN_USER = {"RABBITMQ_DEFAULT_USER": "ann", "RABBITMQ_DEFAULT_PASS": "secret"}


class Login(NamedTuple):
    """A login of an application and one of a monitoring client.

    The container is started with the variables, then the commands run in it.
    """

    environment: dict[str, str]
    commands: tuple[tuple[str, ...], ...]
    owner: str
    monitor: str


LOGINS = {
    "the image's login": Login({}, (), "guest:guest", "guest:guest"),
    "a login by variables": Login(OWN_USER, (), "ann:secret", "ann:secret"),
    "a user with the tag monitoring": Login(OWN_USER, MONITOR, "ann:secret", "watcher:secret"),
}


class Played(NamedTuple):
    """The answers of the HTTP API by path, and the samples of the metrics."""

    answers: dict[str, Any]
    samples: list[Sample]


@pytest.fixture(scope="module", params=LOGINS)
def played(request: pytest.FixtureRequest, image: Image) -> Iterator[Played]:
    login = LOGINS[request.param]
    with image.container(environment=login.environment) as container:
        for command in login.commands:
            assert container.execute(*command).returncode == 0
        try:
            with neighbour(container) as machine:
                script = PLAY.format(address=ADDRESS, owner=login.owner, monitor=login.monitor)
                answers, texts = json.loads(machine.python(script))
        except CannotLink as error:
            pytest.skip(f"no links between namespaces here: {error}")
        assert texts.keys() == FORMS.keys()
        yield Played(answers, samples(texts))


@pytest.mark.parametrize("call", EACH_CALL)
def test_a_monitoring_client_finds_each_field_in_the_image(played: Played, call: Call) -> None:
    assert missed(call, played.answers[call.path]) == {}


@pytest.mark.parametrize(("board", "title"), PANELS)
def test_a_panel_or_an_alert_rule_has_data_in_the_image(played: Played, board: str, title: str) -> None:
    found = [selected(played.samples, selector) for selector in BOARDS[board][title].split()]
    is_empty = bool({(board, title), (board, "")} & EMPTY)
    assert not any(found) if is_empty else all(found)


def test_a_monitoring_client_on_another_machine_needs_a_login(image: Image) -> None:
    script = f"""
from urllib.error import HTTPError
from compat.monitoring.playing import ask
try: ask("http://guest:wrong@{ADDRESS}:15672", "/api/overview")
except HTTPError as error: print(error.code)
"""
    with image.container() as container:
        try:
            with neighbour(container) as machine:
                assert machine.python(script) == "401\n"
        except CannotLink as error:
            pytest.skip(f"no links between namespaces here: {error}")
