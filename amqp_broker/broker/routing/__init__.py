"""A message's way to queues: routes and what they cache, exchanges followed to queues, dead letters.

Queues are in `broker/queues/`, exchanges in `broker/exchanges/`; `session/methods/basic_publish.py` and
`broker/operations/checked_publish.py` check a publish first. Read `destinations.py` first, then `route.py`
and `route_cache.py`.

**Dead letters.** Dead-lettering is iterative, so no chain of queues is too long for the stack. Messages that die
alike within a second share one `DeadForm`, which the vhost keeps until the topology changes.
"""
