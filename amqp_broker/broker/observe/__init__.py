"""Observation of a broker: events, the trace, the event log, captures, and waits.

`management/` shows them. Read `events.py` first.

**Event log.** An `EventLog` observes its vhost, so the plain path does not know it. Events that begin a message's
life hold the message, later ones refer to its number; the ring is bounded in events and bytes. `matching.Criteria`
are pure. A `MessageWait` is offered each event by its log, an `IdleWait` is checked at each flush.
"""
