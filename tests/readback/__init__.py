"""Every write is read back another way, and a durable one after a restart, too.

`http_writes.py`, `access_writes.py` and `own_writes.py` list the writes of the HTTP API, which the command line or an
AMQP client reads back. `ctl_writes.py` and `eval_writes.py` list those of RabbitMQ's tools and of `eval`, which the
HTTP API or an AMQP client reads back. A new endpoint or command fails the tests until it has a row, or a reason among
those that do nothing.
"""
