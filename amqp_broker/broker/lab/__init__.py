"""The laboratory: faults that testers inject on purpose, and advice about the habits of clients.

The decision which rule hits, and what a hit does to a connection, a publish or a delivery, are both here; the
broker's clock is moved in `server/ticking.py`. Read `fault_rules.py` first, then `fault_injector.py`; of advice,
`habits.py`.

**Faults.** `FaultInjector.add` checks a rule and files it under the moment at which it applies. A rule for
publishes makes the routes that it may concern not plain; a rule for deliveries or acks marks queues. Both end when
the rule is spent or removed, so a broker without rules pays nothing. Rules that act on connections during a
delivery use a timer that is due at once, because the queue is in the middle of delivering.

**Advice.** Declarations and consumers are reported as they come. The rest is found by looking at some channels and
queues each second, at those that close, and at all of them when advice is read. The plain path is not asked: a
persistent publish without confirms shows where its properties are first read, an unroutable key where its route is
resolved.
"""
