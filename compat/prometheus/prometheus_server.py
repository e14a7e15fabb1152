"""Prometheus itself: it scrapes a broker, and evaluates the queries of boards."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from compat.brokers import free_port
from compat.prometheus.metrics import FORMS
from compat.waiting import wait_until

# A scrape on a busy machine may take a second.
INTERVAL: Final = "2s"
# Paths of the metrics, by the job that scrapes them.
JOBS: Final = {form.replace(" ", "-"): path for form, path in FORMS.items()}

# A vector of numbers by labels.
Vector = list[tuple[dict[str, str], float]]


@dataclass
class Prometheus:
    """Prometheus on a free port of 127.0.0.1. Queries are about the time `at`, in seconds since the epoch."""

    port: int
    at: float = 0.0

    def ask(self, query: str) -> Vector:
        """Return the value of a query. Raise HTTPError for one that Prometheus cannot evaluate."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?{urlencode({'query': query, 'time': self.at})}"
        with urllib.request.urlopen(url, timeout=20) as response:
            found = json.load(response)["data"]["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def wait_for_scrapes(self, times: int) -> None:
        """Wait until each job has scraped the broker as many times more, and go to that moment.

        A failed scrape hides all metrics until the next one, so each job must have succeeded last.
        """
        before = self._counts()
        wait_until(lambda: self._have_scraped(before, times), timeout_s=60.0)

    def _have_scraped(self, before: dict[str, float], times: int) -> bool:
        counts = self._counts()
        return len(counts) == len(JOBS) and all(counts[job] >= before.get(job, 0) + times for job in counts)

    def _counts(self) -> dict[str, float]:
        """Return the number of successful scrapes of each job whose last scrape succeeded, until now."""
        self.at = time.time()
        try:
            return {labels["job"]: count for labels, count in self.ask("sum_over_time(up[10m]) and up == 1")}
        except OSError:
            return {}  # it has yet to listen


@contextmanager
def prometheus(folder: Path, metrics_port: int) -> Iterator[Prometheus]:
    """Provide a Prometheus that scrapes the three forms of a broker's metrics."""
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(_configuration(metrics_port)), "utf-8")
    server = Prometheus(free_port())
    command = [
        *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
        *(f"--web.listen-address=127.0.0.1:{server.port}", "--log.level=warn"),
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        server.wait_for_scrapes(1)
        yield server
    finally:
        process.kill()
        process.wait()


def _configuration(metrics_port: int) -> dict[str, object]:
    """Return the configuration; YAML contains JSON."""
    jobs = []
    for name, path in JOBS.items():
        metrics_path, _, query = path.partition("?")
        families = [pair.removeprefix("family=") for pair in query.split("&") if pair]
        targets = [{"targets": [f"127.0.0.1:{metrics_port}"]}]
        job = {"job_name": name, "metrics_path": metrics_path, "static_configs": targets}
        jobs.append({**job, "params": {"family": families}} if families else job)
    return {"global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL}, "scrape_configs": jobs}
