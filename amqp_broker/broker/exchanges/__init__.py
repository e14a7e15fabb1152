"""Exchanges of all types, and the bindings that they match.

`broker/routing/` follows the matches to queues. Read `exchange.py` first, which has the base, direct and fanout;
`types.py` has the table of types.

Whatever an exchange can compute at bind time, it computes there. `VHost.route` with a message calls an exchange
once per message, because an exchange may remember the message or keep it back; without a message it only asks for
the destinations.

**Delayed messages.** `DelayedExchange` keeps a message with `x-delay` and answers with no destination. One timer
stands at the earliest due time. When it fires, routing starts at this exchange again, with the delay negated.
"""
