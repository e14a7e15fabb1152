package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

// with runs work on a channel of a new connection.
func with(work func(connection *amqp.Connection, ch *amqp.Channel) error) error {
	connection, err := amqp.Dial(os.Getenv("AMQP_URL"))
	if err != nil {
		return err
	}
	defer connection.Close()
	ch, err := connection.Channel()
	if err != nil {
		return err
	}
	return work(connection, ch)
}

// queue declares an exclusive queue.
func queue(ch *amqp.Channel, stem string, arguments amqp.Table) (string, error) {
	q, err := ch.QueueDeclare(Name(stem), false, false, true, false, arguments)
	return q.Name, err
}

func send(ch *amqp.Channel, key, body string) error {
	return publish(ch, "", key, amqp.Publishing{Body: []byte(body)})
}

func next(deliveries <-chan amqp.Delivery) (amqp.Delivery, error) {
	select {
	case delivery, ok := <-deliveries:
		return delivery, Check(ok, "the consumer has ended")
	case <-time.After(Patience):
		return amqp.Delivery{}, errors.New("no message came")
	}
}

func none(deliveries <-chan amqp.Delivery) error {
	select {
	case delivery := <-deliveries:
		return fmt.Errorf("unexpected message %q", delivery.Body)
	case <-time.After(300 * time.Millisecond):
		return nil
	}
}

func expect(deliveries <-chan amqp.Delivery, bodies ...string) error {
	for _, body := range bodies {
		delivery, err := next(deliveries)
		if err != nil {
			return err
		}
		if string(delivery.Body) != body {
			return fmt.Errorf("got %q instead of %q", delivery.Body, body)
		}
	}
	return nil
}

// code reports whether an error is the broker's with this reply code.
func code(err error, code int) error {
	var closed *amqp.Error
	return Check(errors.As(err, &closed) && closed.Code == code, "got %v instead of %d", err, code)
}
