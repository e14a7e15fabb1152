"""The domain: vhosts, exchanges, bindings, queues, consumers, users. Knows no frames, no sockets and no clock."""
