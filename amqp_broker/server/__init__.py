"""The shell around the core: listeners, sockets, the clock, the flush cycle, signals and shutdown.

AMQP is in `session/`, HTTP in `management/`. Read `server.py` first.

**Time.** `FlushCycle.flush` arms one timer of the loop for the earliest deadline of each heap. `Ticking.advance`
freezes the clock, steps from deadline to deadline, runs what is due, drains all backlogs and flushes before the
next; nothing is read in between. `clock.py` alone reads a clock.

**Backpressure.** A publisher whose messages wait for a backpressured consumer is not read until the consumer has
room, 100 ms at most: a fast publisher adapts to a slow consumer, and a stuck consumer delays no other client. A
publisher with changes for the journal is not read while 2 MiB wait for the commit in flight.

**Alarms.** `alarms.py` compares readings with limits once a second. `disk` has several reasons: little space, a
store beyond its limit or with a full map (which is enlarged, so that deleting can go on), a failed commit. Memory
is anonymous memory: the system owns what LMDB has mapped.

**TLS** is the loop's, below the transport. A session begins after the handshake. `TlsTransport` stores its facts in
`Connection.tls`, so plain connections do not know of TLS. The context's class of connections reports failed
handshakes.

**The start** is mostly imports. Modules that only some brokers need are imported on use, and nothing of HTTP before
the AMQP port is open. Definitions are imported before the port opens and before the first commit: if they fail, the
store is abandoned unchanged. **A pause** (`pauses.py`) closes listeners and connections; the control socket stays
open, and time goes on.

**The log.** Everything logs to `amqp_broker.*` of the standard library. A thread writes lines collected for 10 ms,
and drops and counts those that a slow reader has not taken, so that a full pipe delays no client.
"""
