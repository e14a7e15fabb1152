"""One AMQP connection: AMQP's methods meet the broker's verbs. Bytes in, bytes out; no sockets and no clock."""
