// Command rabbit_hole plays what the HTTP API has to do with the scenarios of compat/README.md with rabbit-hole. Where a
// connection is needed to look at, it is amqp091-go's.
package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

const vhost = "/"

func main() {
	Play(map[string]func() error{
		"connect":        connect,
		"topology":       topology,
		"consume":        consume,
		"dead_letter":    deadLetter,
		"ttl":            ttl,
		"priority":       priority,
		"stream":         stream,
		"wrong_password": wrongPassword,
		"forced_close":   forcedClose,
		"reconnect":      reconnect,
	}, "it manages the broker, and moves no messages")
}

func client(password string) (*rabbithole.Client, error) {
	at, err := url.Parse(os.Getenv("MANAGEMENT_URL"))
	if err != nil {
		return nil, err
	}
	return rabbithole.NewClient("http://"+at.Host, "guest", password)
}

func with(work func(c *rabbithole.Client) error) error {
	c, err := client("guest")
	if err != nil {
		return err
	}
	return work(c)
}

// succeeded checks only that an answer is not an error.
func succeeded[T any](_ T, err error) error { return err }

func status(err error, expected int) error {
	var answer rabbithole.ErrorResponse
	return Check(errors.As(err, &answer) && answer.StatusCode == expected, "got %v instead of %d", err, expected)
}

// soon waits until it is so.
func soon(isSo func() (bool, error), otherwise string) error {
	for end := time.Now().Add(Patience); ; time.Sleep(50 * time.Millisecond) {
		ok, err := isSo()
		if ok {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %v", otherwise, err)
		}
	}
}

// queue declares a durable queue, and returns what undoes it.
func queue(c *rabbithole.Client, q string, arguments map[string]any) (func(), error) {
	_, err := c.DeclareQueue(vhost, q, rabbithole.QueueSettings{Durable: true, Arguments: arguments})
	return func() { _, _ = c.DeleteQueue(vhost, q) }, err
}

// connect makes a virtual host with a user of its own, and reads every answer of a broker in use.
func connect() error {
	return with(func(c *rabbithole.Client) error {
		overview, err := c.Overview()
		if err != nil {
			return err
		}
		me, err := c.Whoami()
		if err != nil {
			return err
		}
		health, err := c.HealthCheckAlarms()
		if err != nil {
			return err
		}
		if overview.Node == "" || me.Name != "guest" || !health.Ok() {
			return fmt.Errorf("%q, %q, %q", overview.Node, me.Name, health.Status)
		}
		return errors.Join(ownVhost(c), answers(c))
	})
}

func ownVhost(c *rabbithole.Client) error {
	own := Name("vhost")
	defer c.DeleteUser(own)
	defer c.DeleteVhost(own)
	limits := rabbithole.VhostLimitsValues{"max-queues": 7}
	if err := errors.Join(
		succeeded(c.PutVhost(own, rabbithole.VhostSettings{Description: "of rabbit-hole"})),
		succeeded(c.PutUser(own, rabbithole.UserSettings{Password: "secret", Tags: rabbithole.UserTags{"management"}})),
		succeeded(c.UpdatePermissionsIn(own, own, rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"})),
		succeeded(c.PutVhostLimits(own, limits)),
	); err != nil {
		return err
	}
	made, err := c.GetVhost(own)
	if err != nil {
		return err
	}
	permissions, err := c.GetPermissionsIn(own, own)
	if err != nil {
		return err
	}
	kept, err := c.GetVhostLimits(own)
	if err != nil {
		return err
	}
	return Check(made.Description == "of rabbit-hole" && permissions.Read == ".*" && len(kept) == 1 && kept[0].Value["max-queues"] == 7,
		"%+v, %+v, %+v", made, permissions, kept)
}

func topology() error {
	return with(func(c *rabbithole.Client) error {
		exchange, q := Name("events"), Name("topology")
		undo, err := queue(c, q, nil)
		if err != nil {
			return err
		}
		defer undo()
		binding := rabbithole.BindingInfo{Source: exchange, Destination: q, DestinationType: "queue", RoutingKey: "order.#"}
		if err := errors.Join(
			succeeded(c.DeclareExchange(vhost, exchange, rabbithole.ExchangeSettings{Type: "topic", Durable: true})),
			succeeded(c.DeclareBinding(vhost, binding)),
		); err != nil {
			return err
		}
		bound, err := c.ListQueueBindingsBetween(vhost, exchange, q)
		if err != nil || len(bound) != 1 || bound[0].RoutingKey != "order.#" {
			return fmt.Errorf("bindings: %+v, %v", bound, err)
		}
		if _, err := c.DeleteBinding(vhost, bound[0]); err != nil {
			return err
		}
		if bound, err = c.ListQueueBindingsBetween(vhost, exchange, q); err != nil || len(bound) != 0 {
			return fmt.Errorf("still bound: %+v, %v", bound, err)
		}
		_, missing := c.GetQueue(vhost, Name("missing"))
		_, other := c.DeclareQueue(vhost, q, rabbithole.QueueSettings{Durable: false})
		return errors.Join(
			status(missing, 404), status(other, 400),
			succeeded(c.PurgeQueue(vhost, q)), succeeded(c.DeleteExchange(vhost, exchange)), succeeded(c.ListQueues()), succeeded(c.ListExchangesIn(vhost)),
		)
	})
}

// consume finds the consumer of a connection with its prefetch count.
func consume() error {
	return withConnection(func(c *rabbithole.Client, _ *amqp.Connection, ch *amqp.Channel) error {
		q, err := ch.QueueDeclare(Name("consume"), false, false, true, false, nil)
		if err != nil {
			return err
		}
		if err := ch.Qos(3, 0, false); err != nil {
			return err
		}
		if _, err := ch.Consume(q.Name, "reader", false, false, false, false, nil); err != nil {
			return err
		}
		return soon(func() (bool, error) {
			consumers, err := c.ListConsumersIn(vhost)
			for _, one := range consumers {
				if one.Queue.Name == q.Name && one.ConsumerTag == "reader" && one.PrefetchCount == 3 {
					return true, nil
				}
			}
			return false, err
		}, "the consumer is not there")
	})
}

// underPolicy puts a policy on one queue, and looks whether it is the queue's.
func underPolicy(stem string, definition rabbithole.PolicyDefinition) error {
	return with(func(c *rabbithole.Client) error {
		q := Name(stem)
		undo, err := queue(c, q, nil)
		if err != nil {
			return err
		}
		defer undo()
		defer c.DeletePolicy(vhost, q)
		policy := rabbithole.Policy{Pattern: "^" + q + "$", ApplyTo: "queues", Priority: 5, Definition: definition}
		if _, err := c.PutPolicy(vhost, q, policy); err != nil {
			return err
		}
		return soon(func() (bool, error) {
			info, err := c.GetQueue(vhost, q)
			return err == nil && info.Policy == q, err
		}, "the queue is not under its policy")
	})
}

func deadLetter() error {
	return underPolicy("dead_letter", rabbithole.PolicyDefinition{"dead-letter-exchange": "amq.fanout", "dead-letter-routing-key": "dead"})
}

func ttl() error { return underPolicy("ttl", rabbithole.PolicyDefinition{"message-ttl": 200}) }

// withArguments declares a queue, and finds the argument in its description.
func withArguments(stem, key string, value any) error {
	return with(func(c *rabbithole.Client) error {
		q := Name(stem)
		undo, err := queue(c, q, map[string]any{key: value})
		if err != nil {
			return err
		}
		defer undo()
		info, err := c.GetQueue(vhost, q)
		if err != nil {
			return err
		}
		return Check(fmt.Sprint(info.Arguments[key]) == fmt.Sprint(value), "arguments: %v", info.Arguments)
	})
}

func priority() error { return withArguments("priority", "x-max-priority", 5) }

func stream() error { return withArguments("stream", "x-queue-type", "stream") }

func wrongPassword() error {
	c, err := client("wrong")
	if err != nil {
		return err
	}
	_, err = c.Overview()
	return Check(err != nil && strings.Contains(err.Error(), "401"), "got %v instead of 401", err)
}

func withConnection(work func(*rabbithole.Client, *amqp.Connection, *amqp.Channel) error) error {
	return with(func(c *rabbithole.Client) error {
		connection, err := amqp.DialConfig(os.Getenv("AMQP_URL"), amqp.Config{Properties: amqp.Table{"connection_name": Name("seen")}})
		if err != nil {
			return err
		}
		defer connection.Close()
		ch, err := connection.Channel()
		if err != nil {
			return err
		}
		return work(c, connection, ch)
	})
}

// forcedClose is the administrator of the scenario here, not its victim.
func forcedClose() error {
	return withConnection(func(c *rabbithole.Client, connection *amqp.Connection, _ *amqp.Channel) error {
		closed := connection.NotifyClose(make(chan *amqp.Error, 1))
		if err := soon(func() (bool, error) {
			connections, err := c.ListConnections()
			for _, one := range connections {
				if one.ClientProperties["connection_name"] == Name("seen") {
					_, err := c.CloseConnection(one.Name)
					return err == nil, err
				}
			}
			return false, err
		}, "the connection is not there"); err != nil {
			return err
		}
		select {
		case told := <-closed:
			return Check(told != nil && told.Code == 320, "closed with %v", told)
		case <-time.After(Patience):
			return errors.New("not closed")
		}
	})
}

func reconnect() error {
	return with(func(c *rabbithole.Client) error {
		q := Name("reconnect")
		undo, err := queue(c, q, nil)
		if err != nil {
			return err
		}
		defer undo()
		if err := Ask("RESTART"); err != nil {
			return err
		}
		return soon(func() (bool, error) {
			info, err := c.GetQueue(vhost, q)
			return err == nil && info.Durable, err
		}, "the queue is not back")
	})
}
