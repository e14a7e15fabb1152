from __future__ import annotations

from amqp_broker.broker.counting.incident import RECENT_MS, Incident, QueueIncidents

NOW = 1_700_000_000_000


def test_an_incident_counts_what_a_total_has_grown_by_and_knows_the_first_and_the_last_time() -> None:
    incident = Incident()
    assert not incident.is_recent(NOW)
    incident.notice(3, NOW)
    incident.notice(3, NOW + 1000)
    incident.notice(10, NOW + 2000)
    assert (incident.count, incident.first_ms, incident.last_ms) == (10, NOW, NOW + 2000)


def test_an_incident_is_over_after_a_time_and_the_next_occurrence_begins_another() -> None:
    incident = Incident()
    incident.notice(3, NOW)
    assert incident.is_recent(NOW + RECENT_MS - 1)
    assert not incident.is_recent(NOW + RECENT_MS)
    incident.notice(5, NOW + RECENT_MS)
    assert (incident.count, incident.first_ms) == (2, NOW + RECENT_MS)


def test_a_total_that_begins_anew_is_no_occurrence() -> None:
    incident = Incident()
    incident.notice(3, NOW)
    incident.notice(1, NOW + 1)
    assert (incident.count, incident.last_ms) == (3, NOW)
    incident.notice(2, NOW + 2)
    assert incident.count == 4


def test_a_queue_has_an_incident_for_each_reason() -> None:
    incidents = QueueIncidents()
    incidents.notice_deaths("rejected", 2, NOW)
    incidents.notice_deaths("expired", 1, NOW + 1)
    incidents.notice_deaths("rejected", 5, NOW + 2)
    assert {reason: one.count for reason, one in incidents.deaths.items()} == {"rejected": 5, "expired": 1}


def test_the_rounds_of_a_queue_are_the_most_of_one_message_lately() -> None:
    incidents = QueueIncidents()
    for rounds in (10, 40, 11):
        incidents.notice_round(rounds, NOW)
    assert (incidents.rounds, incidents.circling.count) == (40, 3)
    incidents.notice_round(12, NOW + RECENT_MS)
    assert (incidents.rounds, incidents.circling.count) == (12, 1)
