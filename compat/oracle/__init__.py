"""RabbitMQ's recorded answers: a real RabbitMQ is asked once, amqp-broker at each run of the tests.

A suite (`suite.py`) is a list of questions and a way to ask them; `suites.py` lists all suites. `records.py` stores the
answers under `compat/recorded/<version>/`. `python -m compat.oracle record` writes them, and `python -m compat.oracle
verify` fails if a RabbitMQ answers differently. Read `suite.py` first.
"""
