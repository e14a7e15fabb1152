"""Random programs with the answers of RabbitMQ, played at any broker.

A program (`steps.py`) is a list of steps as data. A play (`player.py`) sends one step after the other, and waits after
each until the broker is at rest. All that was received meanwhile is a window, in which what RabbitMQ leaves open is
normalized (`windows.py`). `recorded/duel.jsonl.gz` has programs with their windows (`program_records.py`), which are
scenarios of the suite (`program_scenarios.py`). `compat/duel` draws programs, and compares this broker with RabbitMQ.
"""
