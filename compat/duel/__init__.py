"""The duel compares this broker with a live RabbitMQ, step by step through random programs.

A program (`steps.py`) is a list of steps as data, drawn by hypothesis (`programs.py`). A play (`player.py`) sends one
step after the other, and waits after each until the broker is at rest. All that was received meanwhile is a window, in
which what RabbitMQ leaves open is normalized (`windows.py`). The judge (`judge.py`) finds the first window that
differs, plays such a program again, and leaves out what RabbitMQ itself answers differently. A campaign (`campaign.py`)
has hypothesis shrink each difference, and prints it as a scenario of the differential suite.
"""
