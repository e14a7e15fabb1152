module amqp-broker.example/go-cdk

go 1.26.0

require gocloud.dev/pubsub/rabbitpubsub v0.49.0
