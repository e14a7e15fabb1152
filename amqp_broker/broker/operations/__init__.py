"""Operations that combine methods of the broker, or check permissions first.

They change the topology for a user, publish without a channel, move messages, and reset or restore a whole broker.

The methods themselves are in `broker.py` and `vhost.py`. Read `authorized.py` first.
"""
