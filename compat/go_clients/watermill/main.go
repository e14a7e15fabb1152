// Command watermill plays the scenarios of compat/README.md with Watermill's publisher and subscriber for AMQP.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/cenkalti/backoff/v3"
	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

func main() {
	Play(map[string]func() error{
		"connect":        connect,
		"topology":       topology,
		"confirms":       confirms,
		"consume":        consume,
		"requeue":        requeue,
		"dead_letter":    deadLetter,
		"ttl":            ttl,
		"priority":       priority,
		"rpc":            func() error { return Unsupported("its requests and replies go over topics of its own") },
		"large":          large,
		"tls":            overTLS,
		"wrong_password": wrongPassword,
		"forced_close":   func() error { return recovers("CLOSE") },
		"reconnect":      func() error { return recovers("RESTART") },
	}, "not what this library is for")
}

// config is that of a durable queue for each topic, with confirms, that finds back soon.
func config() wamqp.Config {
	c := wamqp.NewDurableQueueConfig(os.Getenv("AMQP_URL"))
	c.Connection.Reconnect = &wamqp.ReconnectConfig{BackoffInitialInterval: 100 * time.Millisecond, BackoffMultiplier: 1.5, BackoffMaxInterval: time.Second}
	c.Publish.ConfirmDelivery = true
	c.Marshaler = marshaler{wamqp.DefaultMarshaler{PostprocessPublishing: func(p amqp.Publishing) amqp.Publishing {
		// Properties without a field in Watermill become metadata.
		if expiration, ok := p.Headers["expiration"].(string); ok {
			p.Expiration = expiration
		}
		if priority, ok := p.Headers["priority"].(string); ok {
			p.Priority = priority[0] - '0'
		}
		return p
	}}}
	return c
}

// marshaler takes messages that were dead-lettered: metadata is text, and Watermill's own refuses all other headers.
type marshaler struct{ wamqp.DefaultMarshaler }

func (m marshaler) Unmarshal(delivery amqp.Delivery) (*message.Message, error) {
	var history []string
	deaths, _ := delivery.Headers["x-death"].([]any)
	for _, death := range deaths {
		one, _ := death.(amqp.Table)
		history = append(history, fmt.Sprint(one["reason"]))
	}
	delete(delivery.Headers, "x-death")
	unmarshalled, err := m.DefaultMarshaler.Unmarshal(delivery)
	if err == nil && deaths != nil {
		unmarshalled.Metadata.Set("deaths", strings.Join(history, ", "))
	}
	return unmarshalled, err
}

// with runs work with a publisher and a subscriber that are closed afterwards.
func with(c wamqp.Config, work func(p message.Publisher, s message.Subscriber) error) error {
	publisher, err := wamqp.NewPublisher(c, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer publisher.Close()
	subscriber, err := wamqp.NewSubscriber(c, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer subscriber.Close()
	return work(publisher, subscriber)
}

func new(body string, metadata ...string) *message.Message {
	m := message.NewMessage(watermill.NewUUID(), []byte(body))
	for i := 0; i < len(metadata); i += 2 {
		m.Metadata.Set(metadata[i], metadata[i+1])
	}
	return m
}

func next(messages <-chan *message.Message) (*message.Message, error) {
	select {
	case m, ok := <-messages:
		return m, Check(ok, "the subscription has ended")
	case <-time.After(Patience):
		return nil, errors.New("no message came")
	}
}

func expect(messages <-chan *message.Message, bodies ...string) error {
	for _, body := range bodies {
		m, err := next(messages)
		if err != nil {
			return err
		}
		m.Ack()
		if string(m.Payload) != body {
			return fmt.Errorf("got %q instead of %q", m.Payload, body)
		}
	}
	return nil
}

func connect() error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic := Name("connect")
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		sent := new("hello", "n", "1")
		if err := p.Publish(topic, sent); err != nil {
			return err
		}
		m, err := next(messages)
		if err != nil {
			return err
		}
		m.Ack()
		return Check(m.Equals(sent), "got %+v", m)
	})
}

// topology has two queues at one fanout exchange, each with what is published.
func topology() error {
	topic := Name("topology")
	both := wamqp.NewDurablePubSubConfig(os.Getenv("AMQP_URL"), wamqp.GenerateQueueNameTopicNameWithSuffix("one"))
	return with(both, func(p message.Publisher, s message.Subscriber) error {
		other := both
		other.Queue.GenerateName = wamqp.GenerateQueueNameTopicNameWithSuffix("two")
		return with(other, func(_ message.Publisher, s2 message.Subscriber) error {
			first, err := s.Subscribe(context.Background(), topic)
			if err != nil {
				return err
			}
			second, err := s2.Subscribe(context.Background(), topic)
			if err != nil {
				return err
			}
			if err := p.Publish(topic, new("1"), new("2")); err != nil {
				return err
			}
			return errors.Join(expect(first, "1", "2"), expect(second, "1", "2"))
		})
	})
}

func confirms() error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic := Name("confirms")
		var all []*message.Message
		for i := 0; i < 100; i++ {
			all = append(all, new("x"))
		}
		if err := s.(message.SubscribeInitializer).SubscribeInitialize(topic); err != nil {
			return err
		}
		return p.Publish(topic, all...)
	})
}

// consume has one message at a time, whatever the prefetch count.
func consume() error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic := Name("consume")
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		if err := p.Publish(topic, new("0"), new("1")); err != nil {
			return err
		}
		first, err := next(messages)
		if err != nil {
			return err
		}
		select {
		case <-messages:
			return errors.New("one more than the prefetch count")
		case <-time.After(300 * time.Millisecond):
		}
		first.Ack()
		return expect(messages, "1")
	})
}

func requeue() error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic := Name("requeue")
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		if err := p.Publish(topic, new("again")); err != nil {
			return err
		}
		m, err := next(messages)
		if err != nil {
			return err
		}
		m.Nack()
		return expect(messages, "again")
	})
}

// deadLetters are a topic's arguments: what it gives up goes to another.
func deadLetters(to string, more amqp.Table) amqp.Table {
	arguments := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": to}
	for key, value := range more {
		arguments[key] = value
	}
	return arguments
}

// deadLetter rejects without requeuing, and finds the message in a queue that gives it back.
func deadLetter() error {
	work, wait := Name("work"), Name("wait")
	working, waiting := config(), config()
	working.Queue.Arguments = deadLetters(wait, nil)
	working.Consume.NoRequeueOnNack = true
	waiting.Queue.Arguments = deadLetters(work, amqp.Table{"x-message-ttl": int32(200)})
	return with(waiting, func(_ message.Publisher, w message.Subscriber) error {
		if err := w.(message.SubscribeInitializer).SubscribeInitialize(wait); err != nil {
			return err
		}
		return with(working, func(p message.Publisher, s message.Subscriber) error {
			messages, err := s.Subscribe(context.Background(), work)
			if err != nil {
				return err
			}
			if err := p.Publish(work, new("try")); err != nil {
				return err
			}
			m, err := next(messages)
			if err != nil {
				return err
			}
			m.Nack()
			if m, err = next(messages); err != nil {
				return err
			}
			m.Ack()
			return Check(m.Metadata.Get("deaths") == "expired, rejected", "deaths: %v", m.Metadata)
		})
	})
}

func ttl() error {
	own, dead := Name("own"), Name("dead")
	expiring := config()
	expiring.Queue.Arguments = deadLetters(dead, nil)
	return with(expiring, func(p message.Publisher, s message.Subscriber) error {
		if err := s.(message.SubscribeInitializer).SubscribeInitialize(own); err != nil {
			return err
		}
		return with(config(), func(_ message.Publisher, s message.Subscriber) error {
			messages, err := s.Subscribe(context.Background(), dead)
			if err != nil {
				return err
			}
			if err := p.Publish(own, new("own", "expiration", "100")); err != nil {
				return err
			}
			return expect(messages, "own")
		})
	})
}

func priority() error {
	c := config()
	c.Queue.Arguments = amqp.Table{"x-max-priority": int32(5)}
	return with(c, func(p message.Publisher, s message.Subscriber) error {
		topic := Name("priority")
		if err := s.(message.SubscribeInitializer).SubscribeInitialize(topic); err != nil {
			return err
		}
		if err := p.Publish(topic, new("1", "priority", "1"), new("5", "priority", "5"), new("3", "priority", "3")); err != nil {
			return err
		}
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		return expect(messages, "5", "3", "1")
	})
}

func large() error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic, body := Name("large"), strings.Repeat("0123456789abcdef", 1<<20)
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		if err := p.Publish(topic, new(body)); err != nil {
			return err
		}
		m, err := next(messages)
		if err != nil {
			return err
		}
		m.Ack()
		return Check(string(m.Payload) == body, "another body came")
	})
}

func overTLS() error {
	authority, err := os.ReadFile(os.Getenv("CA_FILE"))
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	c := config()
	c.Connection.AmqpURI = os.Getenv("AMQPS_URL")
	c.Connection.TLSConfig = &tls.Config{RootCAs: trusted}
	p, err := wamqp.NewPublisher(c, watermill.NopLogger{})
	if err != nil {
		return err
	}
	if err := p.Close(); err != nil {
		return err
	}
	c.Connection.TLSConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	_, err = wamqp.NewPublisher(c, watermill.NopLogger{})
	return Check(err != nil && strings.Contains(err.Error(), "certificate"), "without the authority: %v", err)
}

func wrongPassword() error {
	c := config()
	c.Connection.AmqpURI = strings.Replace(c.Connection.AmqpURI, "guest:guest@", "guest:wrong@", 1)
	_, err := wamqp.NewPublisher(c, watermill.NopLogger{})
	return Check(err != nil && strings.Contains(err.Error(), "403"), "got %v", err)
}

// recovers finds the subscription going on, and publishes again as soon as the publisher is back.
func recovers(what string) error {
	return with(config(), func(p message.Publisher, s message.Subscriber) error {
		topic := Name("recovers-" + what)
		messages, err := s.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		if err := errors.Join(p.Publish(topic, new("before")), expect(messages, "before"), Ask(what)); err != nil {
			return err
		}
		again := backoff.WithMaxRetries(backoff.NewConstantBackOff(200*time.Millisecond), 100)
		if err := backoff.Retry(func() error { return p.Publish(topic, new("after")) }, again); err != nil {
			return err
		}
		// The broker may have ended before it had the ack of the first one.
		for {
			m, err := next(messages)
			if err != nil {
				return err
			}
			m.Ack()
			if string(m.Payload) != "before" {
				return Check(string(m.Payload) == "after", "got %q", m.Payload)
			}
		}
	})
}
