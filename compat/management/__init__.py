"""The HTTP API: amqp-broker answers requests as RabbitMQ did, except for differences.py."""
