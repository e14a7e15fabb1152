"""`amqp-broker compare`: a proxy in front of a RabbitMQ that reports where amqp-broker would have answered differently.

Clients talk to the RabbitMQ (the upstream) through the proxy; everything they send is also played to an in-memory
amqp-broker (the local broker), and the answers of both are compared. `proxy`, `follower` and `upstream` do I/O; the
other modules use no sockets or clocks. `cli/own/compare.py` is the command. Read `connection_pair.py` first.
"""
