// Command consumer prints the deliveries of a queue, which it acknowledges, and the reason of its end.
package main

import (
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	if err := consume(os.Getenv("AMQP_URL"), os.Getenv("QUEUE")); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

func consume(url, queue string) error {
	// After two more silent seconds the connection counts as lost.
	conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: 2 * time.Second})
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	connClosed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 2))
	channel, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	channelClosed := channel.NotifyClose(make(chan *amqp.Error, 1))
	cancelled := channel.NotifyCancel(make(chan string, 1))
	deliveries, err := channel.Consume(queue, "go", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	fmt.Println("ready")
	for {
		select {
		case delivery, ok := <-deliveries:
			if !ok {
				deliveries = nil
				continue
			}
			take(delivery)
		// A channel that closes with the connection has no reason; connClosed has it.
		case blocking, ok := <-blocked:
			if !ok {
				blocked = nil
			} else if blocking.Active {
				fmt.Println("blocked", blocking.Reason)
			} else {
				fmt.Println("unblocked")
			}
		case tag, ok := <-cancelled:
			if !ok {
				cancelled = nil
				continue
			}
			if deliveries != nil {
				for delivery := range deliveries {
					take(delivery)
				}
			}
			fmt.Println("cancelled", tag)
			return nil
		case reason := <-channelClosed:
			if reason != nil && !conn.IsClosed() {
				fmt.Println("channel closed", reason.Code, reason.Reason)
				return nil
			}
			channelClosed = nil
		case reason := <-connClosed:
			if reason != nil {
				fmt.Println("connection closed", reason.Code, reason.Reason)
			}
			return nil
		}
	}
}

func take(delivery amqp.Delivery) {
	fmt.Println("delivered", string(delivery.Body), delivery.Redelivered)
	if err := delivery.Ack(false); err != nil {
		fmt.Println("ack failed", err)
	}
}
