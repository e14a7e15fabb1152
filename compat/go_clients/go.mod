module amqp-broker.example/clients

go 1.22.0

require (
	github.com/ThreeDotsLabs/watermill v1.3.7
	github.com/ThreeDotsLabs/watermill-amqp/v3 v3.0.0
	github.com/michaelklishin/rabbit-hole/v3 v3.1.0
	github.com/rabbitmq/amqp091-go v1.16.0
)
