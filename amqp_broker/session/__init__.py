"""One AMQP connection: methods of AMQP call the broker's functions. Bytes in, bytes out, without sockets or clocks.

Queues and exchanges are in `broker/`, the socket in `server/transport.py`, faults in `broker/lab/`. Read
`session.py` first, then `wire/reader.py` and `channel/channel.py`.

**Errors.** Core and session raise `errors.AMQPError` with RabbitMQ's text. A single `try` around the frame loop
turns a `ChannelError` into channel.close and a `ConnectionError_` into connection.close, with the method at fault;
any other exception is a bug, logged with its traceback, and becomes 541. Nothing raises out of a session, whatever
a peer sends.

**Promises.** A reply that a crash could break waits for its commit: replies after a change of definitions,
tx.commit-ok, queue.purge-ok, and a declaration of something that another connection declared and that is not safe
yet.

**Ends of reads.** Confirms leave as one multiple ack per channel at the end of a read, and freed consumers rejoin
their queues there, too. This coalesces both.

**Backpressure.** A consumer whose socket holds 256 KiB is suspended until the socket has emptied; its messages stay
in the queue. A peer that sends requests and reads no replies is not read beyond 4 MiB of them.

**Teardown.** However a connection ends: consumers go first, then unacked messages return to their positions, then
exclusive queues are deleted.
"""
