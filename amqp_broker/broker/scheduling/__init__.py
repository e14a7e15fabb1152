"""When work is done: deadlines by the broker's clock, and long work in portions.

Nothing here knows what waits. Read `timers.py` first, then `portions.py`.
"""
