"""The broker that the client programs run against: ours, or the real RabbitMQ with BROKER=rabbitmq."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ

# What clients already ask of us and the broker has not yet; each must fail until it has, then leave this list.
NOT_YET = {
    "single active consumer": ["test_single_active_consumer_hands_over_when_it_is_cancelled"],
    "dead-lettering and time to live": [
        "test_rejected_message_is_dead_lettered_with_its_history",
        "test_retry_queue_sends_messages_back_and_counts_their_deaths",
        "test_expired_message_is_dead_lettered_without_its_expiration",
        "test_failed_processing_requeues_a_message_and_rejects_it_when_it_comes_back",
        "test_call_that_waits_too_long_is_dead_lettered_to_its_caller",
        "test_message_expires_and_is_dead_lettered",
        "test_requeued_message_is_redelivered_and_rejected_one_is_dead_lettered",
        "test_native_delayed_delivery_holds_a_message_for_its_countdown",
    ],
    "priority queues": [
        "test_priority_queue_delivers_higher_priorities_first",
        "test_queue_options_become_queue_arguments_that_work",
        "test_full_priority_queue_drops_its_head_which_has_the_highest_priority",
        "test_worker_takes_waiting_tasks_by_priority_and_unlocks_a_chord",
    ],
    "direct reply-to": ["test_calls_are_answered_through_direct_reply_to"],
    "expiry of queues": ["test_unused_queue_expires"],
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("BROKER") == "rabbitmq":
        return
    features = {name: feature for feature, names in NOT_YET.items() for name in names}
    for item in items:
        if item.name in features:
            item.add_marker(pytest.mark.xfail(reason=f"not yet: {features[item.name]}", strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI runs, a client that is not there is a failure."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


def make_broker(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    folder = tmp_path_factory.mktemp("broker")
    return RabbitMQ(folder) if os.environ.get("BROKER") == "rabbitmq" else OurBroker(folder)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests that leave it running; each test uses names of its own."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that a test may kill and restart."""
    process = make_broker(tmp_path_factory)
    process.start()
    yield process
    process.kill()
