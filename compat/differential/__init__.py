"""The differential suite: scenarios played by one client against both brokers have equal transcripts.

A scenario is a function whose name is a sentence (`scenarios/`). It uses a raw client (`scenario_connection.py` and
`scenario_channel.py` over `wire.py`), since a transcript needs every field of every method. `compat/allowed` lists the
intended differences, and `compat/DIFFERENCES.md` explains them to users. Read `lab.py` first; `python -m
compat.differential --help` explains how to print transcripts.
"""
