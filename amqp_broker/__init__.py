"""amqp-broker: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ.

Each package has a docstring that says what it holds and which file to read first. `broker/`, `session/` and
`shovel/` decide and do no input or output; `server/`, `store/` and `management/` connect them to sockets, disk and
HTTP. Read `broker/` first.
"""

# By it, the programs notice that the package `amqp-broker` of the package index has replaced this file.
DISTRIBUTION = "amqp-minibroker"
# pyproject.toml takes it from here: to look it up in the installed package would delay the first client by 30 ms.
__version__ = "0.2.0"
