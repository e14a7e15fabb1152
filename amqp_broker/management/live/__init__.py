"""Server-sent events that keep an open web page up to date.

The page itself is in `page/`. Read `updates.py` first.
"""
