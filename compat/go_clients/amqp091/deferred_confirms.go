//go:build !streadway

package main

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

func publish(ch *amqp.Channel, exchange, key string, message amqp.Publishing) error {
	return ch.PublishWithContext(context.Background(), exchange, key, false, false, message)
}

// publishConfirmed publishes messages to the default exchange and waits for their confirms.
func publishConfirmed(ch *amqp.Channel, key string, mandatory bool, messages ...amqp.Publishing) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var pending []*amqp.DeferredConfirmation
	for _, message := range messages {
		one, err := ch.PublishWithDeferredConfirm("", key, mandatory, false, message)
		if err != nil {
			return err
		}
		pending = append(pending, one)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for _, one := range pending {
		if ok, err := one.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("message %d: %v, %v", one.DeliveryTag, ok, err)
		}
	}
	return nil
}
