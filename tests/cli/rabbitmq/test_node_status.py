from __future__ import annotations

import json

from tests.cli.status_of_node import diagnose


def test_status_is_a_report_or_json() -> None:
    report = diagnose("status")[0]
    for line in ("OS PID: 1", "RabbitMQ version: 4.2.1", "Queue count: 2", "Total memory used: 0.0300 gb"):
        assert f"\n{line}\n" in report
    value = json.loads(diagnose("status --formatter json")[0])
    assert value["totals"] == {"virtual_host_count": 3, "connection_count": 1, "queue_count": 2}
    assert value["listeners"][0]["interface"] == "[::]"


def test_the_environment_is_printed_as_erlang_terms() -> None:
    assert diagnose("-q environment")[0] == (
        '[{rabbit,[{port,5672},{host,<<"localhost">>},{connection_max,undefined}]}]\n'
    )
