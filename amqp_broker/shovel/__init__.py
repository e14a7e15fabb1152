"""Shovels, which move messages between any two brokers, and the replay of captured messages.

Both use `Client`, an AMQP client without a socket, and are written without sockets, clocks or threads; `server/`
connects them to the network. `management/api/shovels.py` has the HTTP API. Read `shovel.py` first.

A delivery at the source is published at the destination as the same frames, and acked at the source when the
destination has confirmed it (`ack-mode` on-confirm). When an end is lost, both restart after `reconnect-delay`.
"""
