"""A message's way to queues: routes and what they cache, exchanges followed to queues, dead letters.

Queues are in `broker/queues/`, exchanges in `broker/exchanges/`; `session/basic_publish.py` and
`broker/operations/checked_publish.py` check a publish first. Read `destinations.py` first, then `route.py`.

**Caches.** A route depends on vhost, user, exchange, key and flags, and is cached per vhost and user: clearing the
caches is one loop over a few dicts, and a thousand connections share a route. Every change of topology, policy or
permission clears them, so a cached route is always true. Only a route whose topic the user may write is plain; a
plain publish therefore checks no permission.

**Dead letters.** Dead-lettering is iterative, so no chain of queues is too long for the stack. Messages that die
alike within a second share one `DeadForm`, which the vhost keeps until the topology changes.
"""
