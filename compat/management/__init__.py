"""The HTTP API: requests whose answers are compared with those of RabbitMQ."""
