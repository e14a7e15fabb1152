"""The differential suite: the scenarios of `amqp_broker/conformance/` at RabbitMQ and at this broker.

`suite.py` records RabbitMQ's transcripts and compares those of this broker. `compat/allowed` lists the intended
differences, and `compat/DIFFERENCES.md` explains them to users. `python -m compat.differential --help` explains how to
print transcripts.
"""
