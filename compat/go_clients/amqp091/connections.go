package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

func connect() error {
	return with(func(connection *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "connect", nil)
		if err != nil {
			return err
		}
		deliveries, err := ch.Consume(q, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		sent := amqp.Publishing{ContentType: "text/plain", MessageId: "m1", Headers: amqp.Table{"n": int64(1)}, Body: []byte("hello")}
		if err := publish(ch, "", q, sent); err != nil {
			return err
		}
		got, err := next(deliveries)
		if err != nil {
			return err
		}
		if string(got.Body) != "hello" || got.MessageId != "m1" || got.ContentType != "text/plain" || !reflect.DeepEqual(got.Headers, sent.Headers) {
			return fmt.Errorf("got %+v", got)
		}
		if err := ch.Close(); err != nil {
			return err
		}
		return connection.Close()
	})
}

func topology() error {
	return with(func(connection *amqp.Connection, ch *amqp.Channel) error {
		first, second, q := Name("events"), Name("archive"), Name("topology")
		if err := ch.ExchangeDeclare(first, "topic", true, false, false, false, nil); err != nil {
			return err
		}
		if err := ch.ExchangeDeclare(second, "fanout", true, false, false, false, nil); err != nil {
			return err
		}
		if _, err := ch.QueueDeclare(q, true, false, false, false, nil); err != nil {
			return err
		}
		if err := ch.ExchangeBind(second, "order.#", first, false, nil); err != nil {
			return err
		}
		if err := ch.QueueBind(q, "", second, false, nil); err != nil {
			return err
		}
		if err := publish(ch, first, "order.created", amqp.Publishing{Body: []byte("1")}); err != nil {
			return err
		}
		if err := ch.ExchangeUnbind(second, "order.#", first, false, nil); err != nil {
			return err
		}
		if err := publish(ch, first, "order.created", amqp.Publishing{Body: []byte("2")}); err != nil {
			return err
		}
		if err := ch.QueueUnbind(q, "", second, nil); err != nil {
			return err
		}
		if count, err := ch.QueuePurge(q, false); err != nil || count != 1 {
			return fmt.Errorf("purged %d messages: %v", count, err)
		}
		if err := refused(connection, 404, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(Name("missing"), false, false, false, false, nil)
			return err
		}); err != nil {
			return err
		}
		if err := refused(connection, 406, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(q, false, false, false, false, nil)
			return err
		}); err != nil {
			return err
		}
		if _, err := ch.QueueDelete(q, false, false, false); err != nil {
			return err
		}
		return errors.Join(ch.ExchangeDelete(first, false, false), ch.ExchangeDelete(second, false, false))
	})
}

// refused runs work on a new channel and expects the broker to close it with the code.
func refused(connection *amqp.Connection, reply int, work func(ch *amqp.Channel) error) error {
	ch, err := connection.Channel()
	if err != nil {
		return err
	}
	return code(work(ch), reply)
}

func serverNamed() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := ch.QueueDeclare("", false, false, true, false, nil)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(q.Name, "amq.gen-") {
			return fmt.Errorf("named %q", q.Name)
		}
		return with(func(other *amqp.Connection, _ *amqp.Channel) error {
			return refused(other, 405, func(ch *amqp.Channel) error {
				_, err := ch.Consume(q.Name, "", true, false, false, false, nil)
				return err
			})
		})
	})
}

func overTLS() error {
	authority, err := os.ReadFile(os.Getenv("CA_FILE"))
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	connection, err := amqp.DialTLS(os.Getenv("AMQPS_URL"), &tls.Config{RootCAs: trusted})
	if err != nil {
		return err
	}
	if err := connection.Close(); err != nil {
		return err
	}
	connection, err = amqp.DialTLS(os.Getenv("AMQPS_URL"), &tls.Config{RootCAs: x509.NewCertPool()})
	if err == nil {
		connection.Close()
	}
	var unknown *tls.CertificateVerificationError
	return Check(errors.As(err, &unknown), "without the authority: %v", err)
}

func wrongPassword() error {
	uri, err := amqp.ParseURI(os.Getenv("AMQP_URL"))
	if err != nil {
		return err
	}
	uri.Password = "wrong"
	_, err = amqp.Dial(uri.String())
	return Check(errors.Is(err, amqp.ErrCredentials), "got %v", err)
}

func forcedClose() error {
	return with(func(connection *amqp.Connection, _ *amqp.Channel) error {
		closed := connection.NotifyClose(make(chan *amqp.Error, 1))
		if err := Ask("CLOSE"); err != nil {
			return err
		}
		select {
		case reason := <-closed:
			return code(reason, 320)
		case <-time.After(Patience):
			return errors.New("the client reported nothing")
		}
	})
}

func reconnect() error {
	q := Name("reconnect")
	if err := with(func(connection *amqp.Connection, ch *amqp.Channel) error {
		if _, err := ch.QueueDeclare(q, true, false, false, false, nil); err != nil {
			return err
		}
		kept := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("kept")}
		if err := publishConfirmed(ch, q, false, kept); err != nil {
			return err
		}
		closed := connection.NotifyClose(make(chan *amqp.Error, 1))
		if err := Ask("RESTART"); err != nil {
			return err
		}
		select {
		case <-closed:
			return nil
		case <-time.After(Patience):
			return errors.New("the client did not report the lost connection")
		}
	}); err != nil {
		return err
	}
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		deliveries, err := ch.Consume(q, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		return expect(deliveries, "kept")
	})
}
