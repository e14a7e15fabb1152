"""The conformance suite: scenarios for any broker that speaks AMQP 0-9-1, and the answers of RabbitMQ.

A scenario is a function whose name is a sentence (`scenarios/`). It uses a raw client (`scenario_connection.py` and
`scenario_channel.py` over `wire.py`), since a transcript needs every field of every method. `recorded/` has the
transcripts of three versions of RabbitMQ, which `python -m compat.oracle record wire` writes. Read `lab.py` first.
Nothing of the broker is imported here: a fault that both shared would stay unseen.
"""
