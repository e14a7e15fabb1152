"""RabbitMQ's management: the HTTP API, the web page, the metrics."""
