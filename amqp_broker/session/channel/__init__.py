"""A channel and its parts: `channel.py` publishes and settles.

`unacked.py` has the deliveries that the client has to settle, `confirms.py` the publishes that are to be confirmed.
"""
