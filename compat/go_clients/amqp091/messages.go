package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	. "amqp-broker.example/clients/harness"
)

func confirms() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "confirms", nil)
		if err != nil {
			return err
		}
		messages := make([]amqp.Publishing, 100)
		for i := range messages {
			messages[i] = amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")}
		}
		return publishConfirmed(ch, q, false, messages...)
	})
}

func returns() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		returned := ch.NotifyReturn(make(chan amqp.Return, 1))
		if err := publishConfirmed(ch, Name("nobody"), true, amqp.Publishing{Body: []byte("lost")}); err != nil {
			return err
		}
		select {
		case r := <-returned:
			return Check(r.ReplyCode == 312 && r.ReplyText == "NO_ROUTE" && string(r.Body) == "lost", "got %+v", r)
		default:
			return errors.New("confirmed, and not returned before")
		}
	})
}

func consume() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "consume", nil)
		if err != nil {
			return err
		}
		for i := 0; i < 10; i++ {
			if err := send(ch, q, fmt.Sprint(i)); err != nil {
				return err
			}
		}
		if err := ch.Qos(3, 0, false); err != nil {
			return err
		}
		deliveries, err := ch.Consume(q, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		var last amqp.Delivery
		for i := 0; i < 3; i++ {
			if last, err = next(deliveries); err != nil {
				return err
			}
		}
		if err := none(deliveries); err != nil {
			return err
		}
		if err := last.Ack(true); err != nil {
			return err
		}
		return expect(deliveries, "3", "4", "5")
	})
}

func requeue() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "requeue", nil)
		if err != nil {
			return err
		}
		deliveries, err := ch.Consume(q, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		if err := send(ch, q, "again"); err != nil {
			return err
		}
		first, err := next(deliveries)
		if err != nil {
			return err
		}
		if err := first.Nack(false, true); err != nil {
			return err
		}
		second, err := next(deliveries)
		if err != nil {
			return err
		}
		return Check(!first.Redelivered && second.Redelivered, "redelivered: %v, then %v", first.Redelivered, second.Redelivered)
	})
}

func deadLetter() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		work, wait := Name("work"), Name("wait")
		for q, back := range map[string]string{work: wait, wait: work} {
			arguments := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": back}
			if q == wait {
				arguments["x-message-ttl"] = int32(200)
			}
			if _, err := ch.QueueDeclare(q, false, false, true, false, arguments); err != nil {
				return err
			}
		}
		deliveries, err := ch.Consume(work, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		if err := send(ch, work, "try"); err != nil {
			return err
		}
		first, err := next(deliveries)
		if err != nil {
			return err
		}
		if err := first.Reject(false); err != nil {
			return err
		}
		second, err := next(deliveries)
		if err != nil {
			return err
		}
		history, _ := second.Headers["x-death"].([]any)
		var reasons []string
		for _, death := range history {
			one, _ := death.(amqp.Table)
			reasons = append(reasons, fmt.Sprintf("%v in %v, %v", one["reason"], one["queue"], one["count"]))
		}
		return Check(reflect.DeepEqual(reasons, []string{"expired in " + wait + ", 1", "rejected in " + work + ", 1"}), "x-death: %q", reasons)
	})
}

func ttl() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		dead, err := queue(ch, "dead", nil)
		if err != nil {
			return err
		}
		toDead := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
		own, err := queue(ch, "own", toDead)
		if err != nil {
			return err
		}
		toDead["x-message-ttl"] = int32(200)
		all, err := queue(ch, "all", toDead)
		if err != nil {
			return err
		}
		if err := publish(ch, "", own, amqp.Publishing{Expiration: "100", Body: []byte("own")}); err != nil {
			return err
		}
		deliveries, err := ch.Consume(dead, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		if err := expect(deliveries, "own"); err != nil {
			return err
		}
		if err := send(ch, all, "all"); err != nil {
			return err
		}
		return expect(deliveries, "all")
	})
}

func priority() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "priority", amqp.Table{"x-max-priority": int32(5)})
		if err != nil {
			return err
		}
		for _, p := range []uint8{1, 5, 3} {
			if err := publish(ch, "", q, amqp.Publishing{Priority: p, Body: []byte(fmt.Sprint(p))}); err != nil {
				return err
			}
		}
		deliveries, err := ch.Consume(q, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		return expect(deliveries, "5", "3", "1")
	})
}

func rpc() error {
	return with(func(connection *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "rpc", nil)
		if err != nil {
			return err
		}
		server, err := connection.Channel()
		if err != nil {
			return err
		}
		questions, err := server.Consume(q, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		go func() {
			for question := range questions {
				answer := amqp.Publishing{CorrelationId: question.CorrelationId, Body: bytes.ToUpper(question.Body)}
				_ = publish(server, "", question.ReplyTo, answer)
			}
		}()
		replies, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		question := amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "7", Body: []byte("question")}
		if err := publish(ch, "", q, question); err != nil {
			return err
		}
		answer, err := next(replies)
		if err != nil {
			return err
		}
		return Check(string(answer.Body) == "QUESTION" && answer.CorrelationId == "7", "got %q", answer.Body)
	})
}

func cancel() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "cancel", nil)
		if err != nil {
			return err
		}
		cancelled := ch.NotifyCancel(make(chan string, 1))
		deliveries, err := ch.Consume(q, "watcher", true, false, false, false, nil)
		if err != nil {
			return err
		}
		if _, err := ch.QueueDelete(q, false, false, false); err != nil {
			return err
		}
		select {
		case tag := <-cancelled:
			if _, open := <-deliveries; open || tag != "watcher" {
				return fmt.Errorf("cancelled %q, still open: %v", tag, open)
			}
			return nil
		case <-time.After(Patience):
			return errors.New("the client reported nothing")
		}
	})
}

func stream() error {
	return with(func(connection *amqp.Connection, ch *amqp.Channel) error {
		q := Name("stream")
		if _, err := ch.QueueDeclare(q, true, false, false, false, amqp.Table{"x-queue-type": "stream"}); err != nil {
			return err
		}
		defer ch.QueueDelete(q, false, false, false)
		var messages []amqp.Publishing
		for i := 0; i < 10; i++ {
			messages = append(messages, amqp.Publishing{Body: []byte(fmt.Sprint(i))})
		}
		if err := publishConfirmed(ch, q, false, messages...); err != nil {
			return err
		}
		for offset, bodies := range map[any][]string{"first": {"0", "1", "2"}, int64(7): {"7", "8", "9"}} {
			reader, err := connection.Channel()
			if err != nil {
				return err
			}
			if err := reader.Qos(10, 0, false); err != nil {
				return err
			}
			deliveries, err := reader.Consume(q, "", false, false, false, false, amqp.Table{"x-stream-offset": offset})
			if err != nil {
				return err
			}
			if err := expect(deliveries, bodies...); err != nil {
				return err
			}
			if err := reader.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

func large() error {
	return with(func(_ *amqp.Connection, ch *amqp.Channel) error {
		q, err := queue(ch, "large", nil)
		if err != nil {
			return err
		}
		body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
		if err := publish(ch, "", q, amqp.Publishing{Body: body}); err != nil {
			return err
		}
		deliveries, err := ch.Consume(q, "", true, false, false, false, nil)
		if err != nil {
			return err
		}
		got, err := next(deliveries)
		if err != nil {
			return err
		}
		return Check(bytes.Equal(got.Body, body), "got %d octets", len(got.Body))
	})
}
