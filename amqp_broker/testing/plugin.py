"""The pytest plugin: a broker for the session, and a vhost for each test.

    def test_it(amqp_url):
        connect(amqp_url)

pytest imports this module in every project where the broker is installed. So it imports pytest and nothing else; the
broker is imported when a fixture is first used.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

if TYPE_CHECKING:
    from amqp_broker.testing.controls import EmbeddedAdvice
    from amqp_broker.testing.embedded import EmbeddedBroker
    from amqp_broker.testing.outside import OutsideBroker, OutsideVHost
    from amqp_broker.testing.vhosts import EmbeddedVHost

    AnyBroker: TypeAlias = EmbeddedBroker | OutsideBroker
    AnyVHost: TypeAlias = EmbeddedVHost | OutsideVHost

# Option of the command line and of the ini file (with underscores, and in capitals of the environment), and its help.
OPTIONS: Final = {
    "amqp-broker-url": "use the broker at this amqp:// URL, ours or RabbitMQ, instead of one in the tests' process",
    "amqp-broker-management-url": "its HTTP API, where vhosts are made; port 15672 if nothing is said",
    "amqp-fail-on-advice": "fail a test whose clients have habits that bite in production: all, or names of habits",
    "amqp-broker-leaks": "what to do about connections that a test leaves open: ignore, warn (the default) or fail",
}
LEAKS: Final = ("ignore", "warn", "fail")
# The vhost of a test that is under way.
VHOST: Final = pytest.StashKey["AnyVHost"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("amqp-broker", "AMQP broker")
    for option, text in OPTIONS.items():
        group.addoption(f"--{option}", default=None, help=text)
        parser.addini(option.replace("-", "_"), text, default="")


def pytest_configure(config: pytest.Config) -> None:
    for line in (*MARKS, COMPAT_MARK, ADVICE_MARK):
        config.addinivalue_line("markers", line)
    leaks = _option(config, "amqp-broker-leaks")
    if leaks and leaks not in LEAKS:
        raise pytest.UsageError(f"amqp-broker-leaks is {leaks!r}, but should be one of {', '.join(LEAKS)}")
    if _option(config, "amqp-fail-on-advice"):
        try:
            _habits(config)
        except ValueError as error:
            raise pytest.UsageError(f"amqp-fail-on-advice: {error}") from None


def _option(config: pytest.Config, option: str) -> str:
    """What the command line says, else the environment, else the ini file."""
    name = option.replace("-", "_")
    return str(config.getoption(name) or os.environ.get(name.upper()) or config.getini(name) or "")


# Fixtures


@pytest.fixture(scope="session")
def amqp_broker_config() -> dict[str, Any]:
    """The settings of the broker (docs/settings.md); override it to have others."""
    return {}


@pytest.fixture(scope="session")
def amqp_broker_factory(amqp_broker_config: dict[str, Any]) -> Iterator[Callable[..., EmbeddedBroker]]:
    """Starts further brokers: `amqp_broker_factory(compat="4.3")`. They stop with the session, if not before."""
    from amqp_broker.testing.embedded import EmbeddedBroker

    started: list[EmbeddedBroker] = []

    def start(**settings: Any) -> EmbeddedBroker:
        broker = EmbeddedBroker(**{**amqp_broker_config, **settings}).start()
        started.append(broker)
        return broker

    yield start
    while started:
        started.pop().stop()


@pytest.fixture(scope="session")
def amqp_broker(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> AnyBroker:
    """The broker of this session, an EmbeddedBroker unless `--amqp-broker-url` names another."""
    url = _option(pytestconfig, "amqp-broker-url")
    if url:
        from amqp_broker.testing.outside import OutsideBroker

        return OutsideBroker(url, _option(pytestconfig, "amqp-broker-management-url"))
    start: Callable[[], EmbeddedBroker] = request.getfixturevalue("amqp_broker_factory")
    return start()


@pytest.fixture(scope="session")
def _amqp_brokers() -> dict[str, AnyBroker]:
    """The brokers of `amqp_compat`, by version."""
    return {}


@pytest.fixture
def amqp_vhost(request: pytest.FixtureRequest, _amqp_brokers: dict[str, AnyBroker]) -> Iterator[AnyVHost]:
    """A fresh vhost, deleted after the test; what the test leaves open there is told."""
    broker = _broker_for(request, _amqp_brokers)
    with broker.vhost(warns=False) as vhost:
        request.node.stash[VHOST] = vhost
        for apply in MARKS.values():
            apply(request.node, vhost)
        yield vhost
    _tell_advice(request.node, vhost)
    _tell_leaks(request.config, vhost.leaks)


@pytest.fixture
def amqp_advice(amqp_vhost: AnyVHost) -> EmbeddedAdvice:
    """What the broker advises the clients of this test: a list, and `habits`, their names."""
    from amqp_broker.testing.vhosts import EmbeddedVHost

    if not isinstance(amqp_vhost, EmbeddedVHost):
        pytest.skip("only the embedded broker gives advice to a test")
    return amqp_vhost.advice


@pytest.fixture
def amqp_url(amqp_vhost: AnyVHost) -> str:
    """amqp://user:password@host:port/vhost of the test's own vhost."""
    return amqp_vhost.url


@pytest.fixture
def amqp_management_url(amqp_vhost: AnyVHost) -> str:
    """http://user:password@host:port of the HTTP API, which is served from now on."""
    return amqp_vhost.broker.management_url


def _habits(config: pytest.Config) -> frozenset[str]:
    """The habits that fail a test. Raises ValueError."""
    from amqp_broker.broker.habits import named

    return named(_option(config, "amqp-fail-on-advice").replace(",", " ").split())


def _tell_advice(item: pytest.Item, vhost: AnyVHost) -> None:
    from amqp_broker.testing.vhosts import EmbeddedVHost

    if not _option(item.config, "amqp-fail-on-advice") or not isinstance(vhost, EmbeddedVHost):
        return
    from amqp_broker.broker.habits import named

    allowed = named(name for mark in item.iter_markers("amqp_allow_advice") for name in mark.args or ("all",))
    failing = _habits(item.config) - allowed
    told = [str(advice) for advice in vhost.advised if advice.habit.name in failing]
    if told:
        pytest.fail("the broker advises:\n" + "\n".join(told), pytrace=False)


def _tell_leaks(config: pytest.Config, leaks: list[str]) -> None:
    choice = _option(config, "amqp-broker-leaks") or "warn"
    if leaks and choice == "fail":
        pytest.fail("the test left open:\n" + "\n".join(leaks), pytrace=False)
    if leaks and choice == "warn":
        from amqp_broker.testing.vhosts import LeakWarning

        for leak in leaks:
            warnings.warn(leak, LeakWarning, stacklevel=1)


# Markers


def _broker_for(request: pytest.FixtureRequest, brokers: dict[str, AnyBroker]) -> AnyBroker:
    """The broker that a test wants: that of the session, or one of the version that `amqp_compat` names."""
    mark = request.node.get_closest_marker("amqp_compat")
    if mark is None:
        found: AnyBroker = request.getfixturevalue("amqp_broker")
        return found
    (version,) = mark.args
    if _option(request.config, "amqp-broker-url"):
        outside: AnyBroker = request.getfixturevalue("amqp_broker")
        if not outside.version.startswith(f"{version}."):
            pytest.skip(f"the broker is {outside.version}, not {version}")
        return outside
    if version not in brokers:
        brokers[version] = request.getfixturevalue("amqp_broker_factory")(compat=version)
    return brokers[version]


def _declare(item: pytest.Item, vhost: AnyVHost) -> None:
    import json

    # The marker that is furthest from the test comes first.
    for mark in reversed(list(item.iter_markers("amqp_definitions"))):
        (given,) = mark.args
        if not isinstance(given, dict):
            path = next(
                (folder / given for folder in (item.path.parent, item.config.rootpath) if (folder / given).exists()),
                item.path.parent / given,
            )
            given = json.loads(path.read_text(encoding="utf-8"))
        vhost.import_definitions(given)


def _go_wrong(item: pytest.Item, vhost: AnyVHost) -> None:
    from amqp_broker.testing.vhosts import EmbeddedVHost

    for mark in reversed(list(item.iter_markers("amqp_fault"))):
        if not isinstance(vhost, EmbeddedVHost):
            pytest.skip("only the embedded broker goes wrong on command")
        vhost.faults.add(*mark.args, **mark.kwargs)


# What a marker does with the vhost of a test before that begins, by the line that `pytest --markers` shows.
MARKS: Final[dict[str, Callable[[pytest.Item, Any], None]]] = {
    "amqp_definitions(file): declare in the test's vhost what a file of definitions, or a dict, says": _declare,
    "amqp_fault(action, **fields): have the broker do wrong in the test's vhost, as docs/faults.md says": _go_wrong,
}
# What `amqp-fail-on-advice` passes over (`_tell_advice`).
ADVICE_MARK: Final = "amqp_allow_advice(*habits): have the test not fail on advice about these habits, or any"
# The one that chooses the broker (`_broker_for`).
COMPAT_MARK: Final = "amqp_compat(version): run against this version of RabbitMQ: '3.13', '4.2' or '4.3'"


# The report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and VHOST in item.stash:
        happened = item.stash[VHOST].what_happened()
        if happened and report.when != "teardown":
            report.sections.append(("amqp", happened))
    return report
