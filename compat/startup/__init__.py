"""Starts of rabbitmq-server with variables, files and arguments as users have them.

`inputs.py` lists the inputs, `starting.py` starts RabbitMQ or this broker with one, and `outcome.py` looks at the
result.
"""
