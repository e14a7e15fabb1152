"""`amqp-broker demo confirms`: publishers of several styles in a storm of faults, and the proof of their promises."""
