"""Operations that combine methods of the broker, or check permissions first.

They change the topology for a user, publish without a channel, move messages, and reset or restore a whole broker.
The methods themselves are in `broker.py` and `vhost.py`. Read `authorized.py` first.

**Publishing over HTTP** uses the same checks and the same routing as basic.publish. **Moving** a message takes it out
of one queue and puts it into another in the same batch of the journal, and returns it to the head if it cannot go.
"""
