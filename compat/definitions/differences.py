"""Refusals of imports whose texts differ from those of RabbitMQ 3.10."""

from __future__ import annotations

# RabbitMQ's texts are Erlang terms, texts as lists of letters, or texts with HTML entities; amqp-broker's are sentences
# that name the object. The texts of amqp-broker by the name of the import:
REASONS = {
    "a queue that expires at once": "precondition_failed: invalid arg 'x-expires' for queue 'q' in vhost '/': "
    "{value_zero,0}",
    "a queue in a vhost that is not there": "queue 'q' in vhost 'none': "
    'Please create virtual host "none" prior to importing definitions',
    "a queue without a vhost": "queue 'q': Virtual host does not exist and is not specified in definitions file",
    "an exchange of an unknown type": "exchange 'e' in vhost '/': precondition_failed: unknown exchange type 'foo'",
    "a permission of a user who is not there": "permission of user 'none' in vhost '/': User 'none' does not exist",
    "a permission in a vhost that is not there": "permission of user 'guest' in vhost 'none': "
    'Please create virtual host "none" prior to importing definitions',
    "a permission that is no pattern": "permission of user 'guest' in vhost '/': "
    "regular expression '*' is invalid: {\"nothing to repeat\",0}",
    "a user without tags": "user 'u' has no tags (tags_not_present)",
    "a user whose hash is none": "user 'u': password hash is not base64",
    "a policy of an unknown key": 'Validation failed\n\n[{<<"foo">>,1}] are not recognised policy settings\n (//p)',
    "an unknown limit": 'Validation failed\n\nUnrecognised terms [{<<"foo">>,1}] in limits\n (//vhost-limits/limits)',
    "a binding to neither a queue nor an exchange": "destination_type of binding 'q' of exchange 'amq.direct' "
    "to foo 'q' in vhost '/' is neither queue nor exchange",
}
