//go:build streadway

package main

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

func publish(ch *amqp.Channel, exchange, key string, message amqp.Publishing) error {
	return ch.Publish(exchange, key, false, false, message)
}

// publishConfirmed publishes messages to the default exchange and waits for their confirms.
func publishConfirmed(ch *amqp.Channel, key string, mandatory bool, messages ...amqp.Publishing) error {
	confirmations := ch.NotifyPublish(make(chan amqp.Confirmation, len(messages)))
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for _, message := range messages {
		if err := ch.Publish("", key, mandatory, false, message); err != nil {
			return err
		}
	}
	for i := range messages {
		select {
		case one, ok := <-confirmations:
			if !ok || !one.Ack {
				return fmt.Errorf("message %d is not confirmed", i+1)
			}
		case <-time.After(Patience):
			return fmt.Errorf("%d of %d messages are confirmed", i, len(messages))
		}
	}
	return nil
}
