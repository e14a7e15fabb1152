"""RabbitMQ's HTTP API beside ours: the same requests to both, the same answers but for what differences.py names."""
