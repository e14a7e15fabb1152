"""Counts of messages, and their history.

Queues, exchanges, channels, vhosts and the node each have `Counters`. Read `counters.py` first.
"""
