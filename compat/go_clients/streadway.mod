module amqp-broker.example/clients

go 1.22.0

require github.com/rabbitmq/amqp091-go v1.16.0

// amqp091-go is a fork of streadway/amqp, so the same program plays with both.
replace github.com/rabbitmq/amqp091-go => github.com/streadway/amqp v1.1.0
