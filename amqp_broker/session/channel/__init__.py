"""A channel and its parts: `channel.py` publishes and settles.

`confirms.py` sends the acks of publishes, `channel_consumer.py` deliveries.
"""
