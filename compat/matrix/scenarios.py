"""What every client is asked to show, in the order in which it is played."""

from __future__ import annotations

SCENARIOS = {
    "connect": "connects, opens a channel, sends a message to itself, and closes both in good order",
    "topology": "declares exchanges and queues, binds, unbinds and deletes; a passive declare and one with other "
    "arguments fail with 404 and 406",
    "confirms": "publishes with confirms, and all of them come",
    "returns": "a mandatory message that no queue takes comes back with 312",
    "consume": "has no more messages unacknowledged than its prefetch count says",
    "requeue": "a message nacked with requeue comes again, and says so",
    "dead_letter": "a rejected message waits in a queue with a TTL and comes back, with its history in `x-death`",
    "ttl": "messages expire by the queue's TTL and by their own",
    "priority": "a queue with priorities gives the highest first",
    "rpc": "a question is answered through `amq.rabbitmq.reply-to`",
    "server_named": "the broker names a queue; an exclusive one is locked to other connections with 405",
    "cancel": "is told that its consumer is gone when the queue is deleted",
    "stream": "reads a stream queue from its first message and from an offset",
    "large": "a message of 16 MiB comes as it went",
    "tls": "connects over TLS and checks the broker's certificate; without the authority it refuses",
    "wrong_password": "is refused with the client's own error for it (403)",
    "forced_close": "an administrator closes the connection: recovers, or says so with its own error (320)",
    "reconnect": "the broker is restarted: recovers, or connects anew, and finds its durable message",
}
