"""The same scenario, through the same client, against our broker and against a real RabbitMQ: equal transcripts.

A scenario is a function with a sentence for a name (`scenarios/`). It talks through a raw client of our own
(`connection.py` and `channel.py` over `wire.py`), because the transcript needs every method with every field. What may
differ stands in `differences.py` and, for users, in `compat/DIFFERENCES.md`. `python -m compat.differential --help`
tells how to look at transcripts.
"""
