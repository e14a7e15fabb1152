"""A run of the suite: scenarios side by side, verdicts as they come, and nothing left behind."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from amqp_broker.conformance.judging import Judge, Judged, Verdict
from amqp_broker.conformance.lab import STOPPED, Broker, Lab, Scenario, Step, play
from amqp_broker.conformance.received import Stopped
from amqp_broker.conformance.terms import SILENCE_S, TOO_SLOW, Skipped, Terms

# Scenarios that wait for seconds run beside the others.
WORKERS, SLOW_WORKERS = 6, 40
QUICK_SILENCE_S = 5.0
# Scenarios that a broker does not answer are played again only if they are few: each costs seconds.
SILENT_MAX = 12
# A broker that has ended may start again in this time.
RETURN_S, PAUSE_S = 20.0, 0.2
GONE = "the broker no longer served clients"
ENDED = "the broker serves no client afterwards"
# A broker that obeys would lose what all other scenarios use, so they come last.
LAST = {"a_predeclared_exchange_cannot_be_deleted"}


@dataclass(frozen=True)
class BrokerAddress:
    """Where a broker listens, and how it is asked."""

    host: str
    port: int
    declares_durable: bool = False


def new_prefix() -> str:
    """Return the beginning of all names of a run, which a person can recognize."""
    return f"conformance-{secrets.token_hex(3)}-"


class SuiteRun:
    """Plays scenarios at a broker. All names begin with `terms.prefix`."""

    def __init__(self, broker: Broker, terms: Terms, judge: Judge) -> None:
        self._broker = broker
        self._terms = terms
        self._judge = judge
        self._lock = threading.Lock()
        self._labs: set[Lab] = set()
        self._is_interrupted = False
        self._is_gone = False
        # Deletions that could not be done.
        self.remaining: list[Step] = []

    def play_all(self, scenarios: Sequence[Scenario], report: Callable[[Judged], None]) -> None:
        """Play scenarios and report each verdict in this thread.

        After an interruption it returns when all is cleaned up.
        """
        try:
            first = [scenario for scenario in scenarios if scenario.name not in LAST]
            differing = self._play(first, WORKERS, report)
            # A busy machine may miss the times of a scenario, and one scenario may end the broker under the others.
            silent = [one for one in differing if one.is_silence]
            kept = differing if self._is_gone else silent if len(silent) > SILENT_MAX else []
            again = [one.scenario for one in differing if one not in kept]
            differing = kept + self._play(again, 1, report)
            differing += self._play([scenario for scenario in scenarios if scenario.name in LAST], 1, report)
            for one in differing:
                report(one)
        finally:
            self._clean_up()

    def _play(self, scenarios: Sequence[Scenario], workers: int, report: Callable[[Judged], None]) -> list[Judged]:
        """Play scenarios side by side; report those that agree or are skipped, and return those to play again."""
        quick, slow = ThreadPoolExecutor(workers), ThreadPoolExecutor(SLOW_WORKERS)
        differing = []
        try:
            futures = [(slow if one.is_slow else quick).submit(self._judged, one) for one in scenarios]
            for future in as_completed(futures):
                judged = future.result()
                if judged.verdict is Verdict.DIFFERS or judged.reason == TOO_SLOW:
                    differing.append(judged)
                else:
                    report(judged)
        except BaseException:
            self._interrupt()
            raise
        finally:
            quick.shutdown(cancel_futures=True)
            slow.shutdown(cancel_futures=True)
        return differing

    def _interrupt(self) -> None:
        with self._lock:
            self._is_interrupted = True
            for lab in self._labs:
                lab.interrupt()

    def _judged(self, scenario: Scenario) -> Judged:
        reason = GONE if self._is_gone else self._judge.reason_to_skip(scenario)
        if reason:
            return Judged(scenario, Verdict.SKIPPED, reason)
        try:
            lines = self._lines(scenario)
        except Skipped as why:
            return Judged(scenario, Verdict.SKIPPED, str(why))
        judged = self._judge.judge(scenario, lines)
        if judged.verdict is Verdict.DIFFERS and not self._is_interrupted and not self._is_serving():
            self._is_gone = not self._returns()
            return replace(judged, places=(*judged.places, ENDED))
        return judged

    def _lines(self, scenario: Scenario) -> list[str]:
        """Play a scenario and return its transcript. Raise Skipped."""
        silence_s = SILENCE_S if scenario.is_slow else QUICK_SILENCE_S
        lab = scenario.lab(self._broker, replace(self._terms, silence_s=silence_s))
        with self._lock:
            self._labs.add(lab)
            if self._is_interrupted:
                lab.interrupt()
        try:
            return play(scenario, lab).splitlines()
        except Skipped:
            raise
        except Exception as error:  # an answer that no scenario has expected
            lab.transcript.record(f"{STOPPED} {type(error).__name__}: {error}")
            return lab.transcript.lines
        finally:
            with self._lock:
                self._labs.discard(lab)
                self.remaining += lab.remaining

    def _is_serving(self) -> bool:
        """Return whether the broker still declares a queue for a new client."""
        lab = Lab(self._broker, replace(self._terms, silence_s=QUICK_SILENCE_S))
        try:
            lab.channel().declare(lab.name("q"), exclusive=True)
        except Stopped:
            return False
        finally:
            lab.leave()
        return True

    def _returns(self) -> bool:
        """Wait until the broker serves again; return False after a while."""
        deadline = time.monotonic() + RETURN_S
        while not self._is_gone and not self._is_interrupted and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            if self._is_serving():
                return True
        return False

    def _clean_up(self) -> None:
        """Delete what scenarios have left because the broker was gone."""
        if self.remaining and not self._is_gone:
            lab = Lab(self._broker, replace(self._terms, silence_s=QUICK_SILENCE_S))
            lab.remaining = self.remaining
            lab.clean_up()
