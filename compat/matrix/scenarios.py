"""The scenarios in order, with what each client has to demonstrate."""

from __future__ import annotations

SCENARIOS = {
    "connect": "connects, opens a channel, sends a message to itself, and closes both correctly; a client of the HTTP "
    "API reads what the broker answers",
    "topology": "declares exchanges and queues, binds, unbinds and deletes; a passive declare and one with other "
    "arguments fail with 404 and 406",
    "confirms": "publishes with confirms, and receives all of them",
    "returns": "an unroutable mandatory message is returned with 312",
    "consume": "has at most as many unacked messages as its prefetch count",
    "requeue": "a message nacked with requeue is redelivered, and marked as redelivered",
    "dead_letter": "a rejected message waits in a queue with a TTL and returns with its history in `x-death`",
    "ttl": "messages expire by the queue's TTL and by their own expiration",
    "priority": "a priority queue delivers the highest priority first",
    "rpc": "a request is answered through `amq.rabbitmq.reply-to`",
    "server_named": "the broker names a queue; an exclusive one is locked to other connections with 405",
    "cancel": "is notified that its consumer is gone when the queue is deleted",
    "stream": "reads a stream queue from its first message and from an offset",
    "large": "a message of 16 MiB arrives unchanged",
    "tls": "connects over TLS and verifies the broker's certificate; without the authority the connection fails",
    "wrong_password": "the login fails with the client's error for it (403)",
    "forced_close": "an administrator closes the connection: the client recovers, or raises its error for it (320)",
    "reconnect": "the broker restarts: the client recovers or reconnects, and finds its durable message",
}
