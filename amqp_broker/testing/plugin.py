"""The pytest plugin: a broker for the session, and a vhost for each test.

    def test_it(amqp_url):
        connect(amqp_url)

pytest imports this module in every project that has the broker installed, so it imports only pytest; the first use of a
fixture imports the broker.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

if TYPE_CHECKING:
    from amqp_broker.testing.celery_apps import CeleryApps
    from amqp_broker.testing.embedded_broker import EmbeddedBroker
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost
    from amqp_broker.testing.external_broker import ExternalBroker, ExternalVHost
    from amqp_broker.testing.lab_controls import EmbeddedAdvice
    from amqp_broker.testing.shared_brokers import SharedBrokers

    AnyBroker: TypeAlias = EmbeddedBroker | ExternalBroker
    AnyVHost: TypeAlias = EmbeddedVHost | ExternalVHost

# Command-line options with their help. The ini file has them with underscores, the environment in capitals.
OPTIONS: Final = {
    "amqp-broker-url": "use the broker at this amqp:// URL, amqp-broker or RabbitMQ, instead of an embedded one",
    "amqp-broker-management-url": "its HTTP API, which creates the vhosts; by default port 15672",
    "amqp-fail-on-advice": "fail tests whose clients have habits that harm production: all, or names of habits",
    "amqp-report": "write a page about the tests that failed into this file (docs/test-report.md)",
    "amqp-broker-leaks": "connections that a test leaves open: ignore, warn (the default) or fail",
    "amqp-broker-unused-faults": "fault rules of a test that hit nothing: ignore, warn (the default) or fail",
}
# The options about what a test leaves behind, and their choices.
LEFTOVERS: Final = ("amqp-broker-leaks", "amqp-broker-unused-faults")
CHOICES: Final = ("ignore", "warn", "fail")
# Lines of the report of a failed test with -v.
ALL_LINES: Final = 200
# The vhost of the running test.
VHOST: Final = pytest.StashKey["AnyVHost"]()
# The brokers that tests share, and whether a test has looked at them.
SHARED: Final[pytest.StashKey[SharedBrokers]] = pytest.StashKey()
BEGUN: Final = pytest.StashKey[bool]()
# The names of all markers that are registered.
MARKERS: Final = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("amqp-broker", "AMQP broker")
    for option, text in OPTIONS.items():
        group.addoption(f"--{option}", default=None, help=text)
        parser.addini(option.replace("-", "_"), text, default="")


def pytest_configure(config: pytest.Config) -> None:
    for line in (*MARKS, COMPAT_MARK, ADVICE_MARK):
        config.addinivalue_line("markers", line)
    for option in LEFTOVERS:
        choice = _option(config, option)
        if choice and choice not in CHOICES:
            raise pytest.UsageError(f"{option} is {choice!r}, but should be one of {', '.join(CHOICES)}")
    if _option(config, "amqp-fail-on-advice"):
        try:
            _habits(config)
        except ValueError as error:
            raise pytest.UsageError(f"amqp-fail-on-advice: {error}") from None
    path = _option(config, "amqp-report")
    # Workers of pytest-xdist send their reports to the process that writes the page.
    if path and not hasattr(config, "workerinput"):
        from amqp_broker.testing.failure_page import FailurePage

        try:
            config.pluginmanager.register(FailurePage(Path(path).absolute()), "amqp-report")
        except OSError as error:
            raise pytest.UsageError(f"amqp-report: cannot write {path}: {error.strerror}") from None


def _option(config: pytest.Config, option: str) -> str:
    """Return the value from the command line, the environment or the ini file, in this order."""
    name = option.replace("-", "_")
    return str(config.getoption(name) or os.environ.get(name.upper()) or config.getini(name) or "")


# Fixtures


@pytest.fixture(scope="session")
def amqp_broker_config() -> dict[str, Any]:
    """The settings of the broker (docs/settings.md); override this fixture to change them."""
    return {}


@pytest.fixture(scope="session")
def amqp_broker_factory(amqp_broker_config: dict[str, Any]) -> Iterator[Callable[..., EmbeddedBroker]]:
    """Start more brokers: `amqp_broker_factory(compat="4.3")`. They stop at the end of the session."""
    from amqp_broker.testing.embedded_broker import EmbeddedBroker

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
    """The broker of the session: an EmbeddedBroker, or the one at `--amqp-broker-url`."""
    url = _option(pytestconfig, "amqp-broker-url")
    if url:
        from amqp_broker.testing.external_broker import ExternalBroker

        return ExternalBroker(url, _option(pytestconfig, "amqp-broker-management-url"))
    return _shared(request)


def _shared(request: pytest.FixtureRequest, **settings: Any) -> EmbeddedBroker:
    """Start a broker that tests share."""
    from amqp_broker.testing.shared_brokers import SharedBrokers

    broker: EmbeddedBroker = request.getfixturevalue("amqp_broker_factory")(**settings)
    request.config.stash.setdefault(SHARED, SharedBrokers()).add(broker)
    return broker


@pytest.fixture(scope="session")
def _amqp_brokers() -> dict[str, AnyBroker]:
    """The brokers of `amqp_compat`, by version."""
    return {}


@pytest.fixture
def amqp_vhost(request: pytest.FixtureRequest, _amqp_brokers: dict[str, AnyBroker]) -> Iterator[AnyVHost]:
    """A vhost for the test, deleted afterwards. Connections that the test leaves open are reported."""
    broker = _broker_for(request, _amqp_brokers)
    with broker.vhost(warns=False) as vhost:
        request.node.stash[VHOST] = vhost
        if _option(request.config, "amqp-report"):
            from amqp_broker.testing.failure_page import start_log

            start_log(vhost)
        for line, apply in MARKS.items():
            with _explained(line):
                apply(request.node, vhost)
        allowed = _allowed_habits(request.node)
        yield vhost
    _report_advice(request.config, vhost, allowed)
    _report_unused_faults(request.config, vhost)
    _report_leaks(request.config, vhost)


@pytest.fixture
def amqp_advice(amqp_vhost: AnyVHost) -> EmbeddedAdvice:
    """The advice of the broker about the clients of this test; `habits` has the names."""
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost

    if not isinstance(amqp_vhost, EmbeddedVHost):
        pytest.skip("only the embedded broker gives advice to a test")
    return amqp_vhost.advice


@pytest.fixture
def amqp_url(amqp_vhost: AnyVHost) -> str:
    """amqp://user:password@host:port/vhost of the test's own vhost."""
    return amqp_vhost.url


@pytest.fixture
def amqp_management_url(amqp_vhost: AnyVHost) -> str:
    """http://user:password@host:port of the HTTP API, which this fixture starts."""
    return amqp_vhost.broker.management_url


@pytest.fixture
def amqp_celery(amqp_vhost: AnyVHost, monkeypatch: pytest.MonkeyPatch) -> Iterator[CeleryApps]:
    """Let all Celery applications use the vhost of the test; `with amqp_celery.worker(app)` runs a worker."""
    from amqp_broker.testing.celery_apps import CeleryApps

    apps = CeleryApps(amqp_vhost.url, monkeypatch)
    yield apps
    apps.close()


def _habits(config: pytest.Config) -> frozenset[str]:
    """Return the habits that fail a test. Raise ValueError."""
    from amqp_broker.broker.lab.habits import named

    return named(_option(config, "amqp-fail-on-advice").replace(",", " ").split())


def _allowed_habits(item: pytest.Item) -> frozenset[str]:
    """Return the habits that the markers of a test permit."""
    from amqp_broker.broker.lab.habits import named

    with _explained(ADVICE_MARK):
        return named(name for mark in item.iter_markers("amqp_allow_advice") for name in mark.args or ("all",))


def _report_advice(config: pytest.Config, vhost: AnyVHost, allowed: frozenset[str]) -> None:
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost

    if not _option(config, "amqp-fail-on-advice") or not isinstance(vhost, EmbeddedVHost):
        return
    failing = _habits(config) - allowed
    reported = [str(advice) for advice in vhost.advised if advice.habit.name in failing]
    if reported:
        pytest.fail("the broker advises:\n" + "\n".join(reported), pytrace=False)


def _report_unused_faults(config: pytest.Config, vhost: AnyVHost) -> None:
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost, UnusedFaultWarning

    if isinstance(vhost, EmbeddedVHost):
        _report_leftovers(config, "amqp-broker-unused-faults", vhost.unused_faults, "", UnusedFaultWarning)


def _report_leaks(config: pytest.Config, vhost: AnyVHost) -> None:
    from amqp_broker.testing.embedded_vhost import LeakWarning

    _report_leftovers(config, "amqp-broker-leaks", vhost.leaks, "the test left open:\n", LeakWarning)


def _report_leftovers(
    config: pytest.Config, option: str, sentences: list[str], heading: str, category: type[Warning]
) -> None:
    choice = _option(config, option) or "warn"
    if sentences and choice == "fail":
        pytest.fail(heading + "\n".join(sentences), pytrace=False)
    if choice == "warn":
        for sentence in sentences:
            warnings.warn(sentence, category, stacklevel=1)


# Each test leaves the brokers that it shares with others as it found them (shared_brokers.py)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Keep what a fixture changes that outlives the test."""
    if fixturedef.scope == "function":
        _begin(request.node)
        return (yield)
    shared = request.config.stash.get(SHARED, None)
    before = {} if shared is None else shared.looks()
    result = yield
    # It may have started the broker.
    shared = request.config.stash.get(SHARED, None)
    if shared is not None:
        shared.keep(before)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _begin(item)


def _begin(item: pytest.Item) -> None:
    """Restore the brokers when the fixtures of a test have ended, before the end of those that outlive it."""
    if item.stash.get(BEGUN, False):
        return
    item.stash[BEGUN] = True
    if SHARED in item.config.stash:
        item.config.stash[SHARED].begin_test()

    def end() -> None:
        item.stash[BEGUN] = False
        if SHARED in item.config.stash:
            item.config.stash[SHARED].end_test()

    item.addfinalizer(end)


# Markers


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that might pass without its marker.

    The marker has a typo, or it prepares a vhost that the test does not use.
    """
    for mark in item.iter_markers():
        if mark.name not in _marker_names(item.config) and (question := _similar_marker(mark.name)):
            pytest.fail(f"@pytest.mark.{mark.name} is unknown{question}", pytrace=False)
    if "amqp_vhost" not in getattr(item, "fixturenames", ()):
        for mark in item.own_markers:
            if mark.name in VHOST_MARKS:
                pytest.fail(f"@pytest.mark.{mark.name} needs the fixture amqp_vhost or amqp_url", pytrace=False)


def _marker_names(config: pytest.Config) -> set[str]:
    """Return the names of all registered markers."""
    if MARKERS not in config.stash:
        config.stash[MARKERS] = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    return config.stash[MARKERS]


def _similar_marker(name: str) -> str:
    """Return a question for one of the plugin's markers; "" if none is similar."""
    from amqp_broker.broker.admin.similar_names import did_you_mean

    return did_you_mean(name, (line.partition("(")[0] for line in (*MARKS, COMPAT_MARK, ADVICE_MARK)), "; ")


@contextmanager
def _explained(line: str) -> Iterator[None]:
    """Fail the test with a sentence for a mistake in a marker: a traceback would show the plugin alone."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        reason = str(error)
    else:
        return
    # Without the error as its context, which would be shown before the sentence.
    raise pytest.fail.Exception(f"@pytest.mark.{line.partition('(')[0]}: {reason}", pytrace=False) from None


def _argument(mark: pytest.Mark) -> Any:
    """Return the one argument of a marker. Raise TypeError."""
    if len(mark.args) != 1 or mark.kwargs:
        raise TypeError("it takes one argument")
    return mark.args[0]


def _broker_for(request: pytest.FixtureRequest, brokers: dict[str, AnyBroker]) -> AnyBroker:
    """Return the broker of the session, or one of the version that the marker `amqp_compat` names."""
    mark = request.node.get_closest_marker("amqp_compat")
    if mark is None:
        found: AnyBroker = request.getfixturevalue("amqp_broker")
        return found
    with _explained(COMPAT_MARK):
        version = _argument(mark)
    if _option(request.config, "amqp-broker-url"):
        outside: AnyBroker = request.getfixturevalue("amqp_broker")
        if not outside.version.startswith(f"{version}."):
            pytest.skip(f"the broker is {outside.version}, not {version}")
        return outside
    if version not in brokers:
        with _explained(COMPAT_MARK):
            brokers[version] = _shared(request, compat=version)
    return brokers[version]


def _declare(item: pytest.Item, vhost: AnyVHost) -> None:
    from amqp_broker.broker.admin.similar_names import did_you_mean
    from amqp_broker.management.documents.parsing import parse

    # Markers of outer scopes are applied first.
    for mark in reversed(list(item.iter_markers("amqp_definitions"))):
        given = _argument(mark)
        if not isinstance(given, dict):
            path = next(
                (folder / given for folder in (item.path.parent, item.config.rootpath) if (folder / given).exists()),
                item.path.parent / given,
            )
            try:
                given = parse(path.read_bytes())
            except FileNotFoundError:
                files = (file.name for file in path.parent.iterdir()) if path.parent.is_dir() else ()
                question = did_you_mean(path.name, files, "; ")
                raise ValueError(f"there is no file {path}{question}") from None
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        vhost.import_definitions(given)


def _add_faults(item: pytest.Item, vhost: AnyVHost) -> None:
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost

    for mark in reversed(list(item.iter_markers("amqp_fault"))):
        if not isinstance(vhost, EmbeddedVHost):
            pytest.skip("only the embedded broker injects faults")
        vhost.faults.add(*mark.args, **mark.kwargs)


# Functions that prepare the vhost of a test, by the line of their marker in `pytest --markers`.
MARKS: Final[dict[str, Callable[[pytest.Item, Any], None]]] = {
    "amqp_definitions(file): import a definitions file, or a dict, into the vhost of the test": _declare,
    "amqp_fault(action, **fields): add a fault rule to the vhost of the test (docs/faults.md)": _add_faults,
}
VHOST_MARKS: Final = (*(line.partition("(")[0] for line in MARKS), "amqp_compat")
# The exceptions of `amqp-fail-on-advice` (`_report_advice`).
ADVICE_MARK: Final = "amqp_allow_advice(*habits): do not fail the test on advice about these habits, or about any"
# Chooses the broker (`_broker_for`).
COMPAT_MARK: Final = "amqp_compat(version): run against this version of RabbitMQ: '3.13', '4.0', '4.2' or '4.3'"


# The report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if VHOST in item.stash and call.excinfo is not None and not item.config.getoption("fulltrace", False):
        from amqp_broker.testing.traceback_frames import hide_internal_frames

        hide_internal_frames(call.excinfo.value)
    report = yield
    if report.failed and VHOST in item.stash and _option(item.config, "amqp-report"):
        from amqp_broker.testing.failure_page import attach

        attach(report, item.stash[VHOST])
    if report.failed and VHOST in item.stash and report.when != "teardown":
        vhost = item.stash[VHOST]
        is_verbose = item.config.get_verbosity() > 0
        events = vhost.failure_report(ALL_LINES) if is_verbose else vhost.failure_report()
        if events:
            report.sections.insert(0, ("amqp", events))
    return report
