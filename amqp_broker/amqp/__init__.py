"""AMQP 0-9-1 on the wire: frames, methods, field tables, content, the message, errors.

Nothing here knows a queue, a socket or a clock. Read `message.py` first.

Field tables and rare methods are decoded here; pamqp is the catalogue of methods and the oracle of the property
tests. pamqp drops the integer type of a value, which RabbitMQ's texts name, reads truncated values as empty ones,
and refuses names that RabbitMQ accepts.
"""
