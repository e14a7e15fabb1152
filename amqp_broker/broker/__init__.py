"""The domain: vhosts and their objects, as synchronous code without frames, sockets or clocks.

Here are the broker, its vhosts, users and parameters, which use the packages `admin/`, `durability/`, `exchanges/`,
`queues/`, `routing/`, `clients/`, `observe/` and `lab/`; `scheduling/` and `counting/` serve them all. `operations/`
uses the broker; `session/` connects it to AMQP. Read `vhost.py` first.

**Time.** `scheduling/timers.py` has a heap of deadlines. `Broker.timers` obeys a clock that can be frozen and advanced;
`Broker.real_timers` measures real time, for heartbeats, handshakes, closes, shovels and rates. Without a server, as
in tests, both are the same heap. A regular expression from a user is the one exception to the rule that all time is
an argument: it has 20 ms of CPU per name, and does not match afterwards (`admin/patterns.py`).

**Backlogs.** A long backlog is delivered in portions, so that other clients have their turn. `Broker.drain_on`
runs the next portion of each backlog in `Broker.undrained`: of queues, and of exchanges with many due messages. The
work of a turn is counted (`Broker.work`). Beyond `WORK_MAX`, the next turn goes on with all that can wait: with
messages that a queue gives up (`GivingUpQueue`), and with the rest of a read (`Session.spend`).

**Counting.** The hot path counts two things: a channel its publishes, a consumer its deliveries. Everything else is
derived. Publishes are counted as runs on the same `Route`; when a run ends, its length goes to the route, and from
there to exchange, queues, vhost and node. Acks are deliveries minus those held and refused. Confirms are counted
once per read, gets and dead letters where they happen. `Broker.collect_counts` brings all counts up to date; call it
before reading any.
"""
