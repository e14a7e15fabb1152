"""The client matrix: programs in many languages play the same scenarios at both brokers.

`python -m compat.matrix` plays them at amqp-broker and RabbitMQ, and writes the table of compat/README.md, which also
describes the protocol of the programs. A client joins with a folder that has a `row.py`. Read `rows.py` and
`scenarios.py` first.
"""
