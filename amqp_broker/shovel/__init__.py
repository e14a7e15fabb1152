"""Shovels: moving messages from a queue or an exchange to another, here or at any other RabbitMQ."""
