"""Parts that amqp-broker's own commands and RabbitMQ's share: the way to a node, and the terminal.

`node_finder.py` finds a running broker, and `http_api.py` asks it. Read `node_finder.py` first.
"""
