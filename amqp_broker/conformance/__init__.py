"""`amqp-broker conformance`: scenarios for any broker that speaks AMQP 0-9-1, and the answers of RabbitMQ.

A scenario is a function whose name is a sentence (`scenarios/`). It uses a raw client (`scenario_connection.py` and
`scenario_channel.py` over `wire.py`), since a transcript needs every field of every method. `recorded/` has the
transcripts of three versions of RabbitMQ, which `python -m compat.oracle record wire` writes. `probing.py` takes a
first look at a broker, `suite_run.py` plays the scenarios, `judging.py` compares, and `results.py` is what the reports
show. Read `lab.py` first, then `suite_run.py`.
Nothing of the broker is imported here: a fault that both shared would stay unseen.
"""
