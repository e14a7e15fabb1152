"""Go CDK's own conformance suite of its driver for RabbitMQ has the same results here as at RabbitMQ.

The suite is the unmodified test of the module that go.mod pins; Go builds it in the cache of modules. With a server, it
runs most tests once more with its own fake of a server; those have names with `#01`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from compat.applications.go_suites import Program, build, play_at_both
from compat.matrix.installing import InstallError
from compat.matrix.rows import Client, Row

HERE = Path(__file__).parent
PACKAGE = "gocloud.dev/pubsub/rabbitpubsub"
VERSION = re.findall(rf"{PACKAGE} v(\S+)", (HERE / "go.mod").read_text("utf-8"))[0]
PROGRAM = "rabbitpubsub.test"
SUITE = Client(Row("go-cdk", "Go", VERSION, (), (("go", "test", "-p", "1", "-c", "-o", PROGRAM, PACKAGE),)), HERE)
# All tests of the version, those with the fake included.
TESTS = 48
# The suite declares queues that are neither durable nor exclusive. Upstream runs it with RabbitMQ 3.10.
PERMITTED = ("deprecated_features.permit.transient_nonexcl_queues = true",)
REFUSAL = r"Exception \(541\) Reason: \"INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated\."
# Its tests use the server everywhere but on runners without Docker.
VARIABLES = {"RUNNER_OS": "Linux"}

pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the suite a network of its own"),
]


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return build(SUITE, [PROGRAM]) / PROGRAM
    except InstallError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("version", "settings"), [("3.10", ()), ("4.3", PERMITTED)], ids=["3.10", "4.3"])
def test_each_test_of_the_suite_passes_here_as_at_rabbitmq(
    program: Path, tmp_path: Path, version: str, settings: tuple[str, ...]
) -> None:
    here, there = play_at_both(tmp_path, version, settings, [Program(program, variables=VARIABLES)])
    assert here.by_test == there.by_test, here.output + there.output
    assert here.named("fail") == []
    assert len(here.named("pass")) >= TESTS


def test_the_queues_of_the_suite_are_refused_as_by_rabbitmq_4_3_unless_they_are_permitted(
    program: Path, tmp_path: Path
) -> None:
    # The first refusal ends the suite, so this selects a single test with a queue, the last one.
    tests = "^(TestUnroutable|TestOpenTopicFromURL|TestOpenSubscriptionFromURL)$/^(valid_url.*_key_.*|url_with_no_.*)$"
    here, there = play_at_both(tmp_path, "4.3", (), [Program(program, tests, variables=VARIABLES)])
    assert here.by_test == there.by_test, here.output + there.output
    for results in (here, there):
        refused = ["TestOpenSubscriptionFromURL/url_with_no_QoS_prefetch_count", "TestOpenSubscriptionFromURL"]
        assert results.named("fail") == refused
        assert re.search(REFUSAL, results.output), results.output
