"""The duel compares this broker with a live RabbitMQ, step by step through random programs.

hypothesis draws the programs (`programs.py`): steps (`makers.py`, `choices.py`) of a theme (`themes.py`). The judge
(`judge.py`) plays each at both, in the way that `amqp_broker/conformance/duel` describes, finds the first window that
differs, plays such a program again, and leaves out what RabbitMQ itself answers differently. A campaign (`campaign.py`)
has hypothesis shrink each difference, and prints it as a scenario of the differential suite. Programs that agree are
kept with RabbitMQ's answers (`recording.py`). Bugs are planted into the broker, and the kept programs find them
(`finding.py`).
"""
