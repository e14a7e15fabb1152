"""Rows that grow, with the reasons. A row that grows no longer has to leave its list."""

from __future__ import annotations

from typing import Final

# The names of rows, a line each, by the reason.
_BY_REASON: Final = {
    "Many messages of one queue are settled, given up or removed in one turn.": """
a_stream_retains_for_a_time
""",
    "Each backlog is served once in a turn, however many there are.": """
many_backlogs_are_delivered
""",
    "One message finds its queues, and is pushed to them, in one turn.": """
a_publish_to_many_queues
publishes_beside_many_headers_bindings
a_publish_through_a_chain_of_exchanges
a_publish_through_a_chain_of_alternate_exchanges
a_publish_through_a_lattice_of_exchanges
""",
    "A change of one connection reaches all of its channels and consumers in one turn.": """
basic_qos_of_each
channel_close_consuming_of_all
a_connection_with_many_channels_is_lost
a_connection_with_many_channels_is_closed
a_full_socket_with_many_consumers
queues_go_with_the_last_consumers_of_a_connection
acks_beside_many_consumers_that_share_a_limit
consumers_do_not_acknowledge
DELETE /api/vhosts/%2F alone
DELETE /api/users/guest alone
DELETE /api/connections/username/guest alone
DELETE /api/connections/127.0.0.1:40000%20-%3E%20127.0.0.1:5672 alone
POST /_broker/reset alone
""",
    "Cancelled timers are removed when they come up, three lines for each step in the heap.": """
a_day_passes_beside_many_objects
clients_miss_heartbeats
""",
    "Two or three lines for each binding or exclusive queue, which takes the object out of reach at once.": """
exchange_delete_beside_many
exchange_delete_bound_direct_of_all
exchange_delete_bound_topic_of_all
exchange_delete_bound_fanout_of_all
exchange_delete_bound_headers_of_all
a_connection_with_many_exclusive_queues_is_lost
""",
    "A new object is compared with each policy, by one pattern for each.": """
a_queue_is_declared_beside_many_policies
a_policy_is_set_beside_many_policies
""",
    "All queues are compared with the history at one moment.": """
GET /_broker/history/{vhost}
""",
    "Objects are copied at the first step, since the answer shows one moment.": """
GET /api/definitions
GET /api/all-configuration
GET /api/definitions/{vhost}
GET /_broker/snapshot/{vhost}
""",
    "Each message is sought among the events of the log, which has 10 000 at most.": """
GET /_broker/messages
GET /_broker/messages/{number}
GET /_broker/messages/{number}/pytest
GET /_broker/queues/{vhost}/{queue}/lives
GET /_broker/queues/{vhost}/{queue}/pytest
DELETE /_broker/messages alone
DELETE /_broker/event-log alone
DELETE /api/queues/%2F/full/contents alone
""",
    "An object that a change concerns is compared with each policy, by one pattern for each.": """
PUT /api/policies/%2F/of-all
DELETE /api/policies/%2F/of-all
PUT /api/policies/%2F/new
PUT /api/operator-policies/%2F/new
PUT /api/queues/%2F/new
PUT /api/queues/%2F/new-quorum
PUT /api/exchanges/%2F/new
definitions_are_imported
""",
    "Objects of which a broker has few, such as users, vhosts and parameters, are listed in one step.": """
GET /api/overview
GET /api/deprecated-features/used
GET /api/exchanges
GET /api/exchanges/{vhost}/{name}
GET /api/bindings
GET /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}
GET /api/users/without-permissions
GET /api/vhosts/{vhost}/permissions
GET /api/vhosts/{vhost}/topic-permissions
GET /api/user-limits/{user}
GET /api/policies
GET /api/operator-policies
GET /api/parameters
GET /api/parameters/{component}
GET /api/parameters/{component}/{vhost}
GET /api/federation-links
GET /api/shovels
GET /_broker/advice
GET /_broker/advice-habits
GET /_broker/idle
GET /_broker/faults
DELETE /_broker/faults alone
GET /metrics
GET /metrics/per-object
PUT /api/vhosts/new
DELETE /api/vhosts/new
DELETE /api/users/new
PUT /api/permissions/v1/user1
DELETE /api/permissions/v1/user1
PUT /api/topic-permissions/v1/user1
DELETE /api/topic-permissions/v1/user1
PUT /api/permissions/%2F/guest
POST /api/users/bulk-delete
""",
}

# The reason by the name of a row.
KNOWN: Final = {name: reason for reason, names in _BY_REASON.items() for name in names.strip().splitlines()}
