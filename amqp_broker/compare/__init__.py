"""A proxy before a real RabbitMQ that plays the same to our broker and tells where the two answer differently."""
