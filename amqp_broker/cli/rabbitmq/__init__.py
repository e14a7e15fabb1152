"""RabbitMQ's tools: rabbitmqctl and its siblings, rabbitmqadmin, and the script rabbitmq-server.

Their words, outputs and exit codes are RabbitMQ's, byte for byte; the data comes from the broker's HTTP API. Health
checks run every second, so these modules import the standard library only. Read `command.py` first, then `tool.py`.
"""
