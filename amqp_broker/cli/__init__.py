"""The command line: `main.py` is its entry; the other files here are what all commands share.

RabbitMQ's tools are in `rabbitmq/`, commands that only this broker has in `own/`. Commands know the broker as its HTTP
API or as a server that they start; they decide nothing about messages. Read `main.py` first.

A health check runs every second, so a command imports only what it needs: the shims of RabbitMQ's tools start
`python -IS` and use the standard library alone. Tables declare the commands of RabbitMQ's tools, one `Command`
each. Commands without an endpoint of RabbitMQ use endpoints under `/_broker/`. `run` is the parent of two
processes, the broker and the command.
"""
