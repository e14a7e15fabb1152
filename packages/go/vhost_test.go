package amqpbroker

import (
	"log"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var shared *Broker

func TestMain(m *testing.M) {
	var err error
	if shared, err = Start(); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	shared.Stop()
	os.Exit(code)
}

// channelFor returns a channel in confirm mode with a queue, in a vhost of the test's own whose end closes it.
func channelFor(t *testing.T, arguments amqp.Table) (*VHost, *amqp.Channel) {
	t.Helper()
	vhost := shared.VHost(t)
	connection, err := amqp.Dial(vhost.URL)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	queue, err := channel.QueueDeclare("orders", true, false, false, false, arguments)
	if err != nil || queue.Messages != 0 {
		t.Fatal(queue, err)
	}
	return vhost, channel
}

// isConfirmed publishes an order, and returns whether the broker has confirmed it.
func isConfirmed(t *testing.T, channel *amqp.Channel) bool {
	t.Helper()
	message := amqp.Publishing{Body: []byte("order 1")}
	confirm, err := channel.PublishWithDeferredConfirm("", "orders", true, false, message)
	if err != nil {
		t.Fatal(err)
	}
	return confirm.Wait()
}

func depth(t *testing.T, channel *amqp.Channel) int {
	t.Helper()
	queue, err := channel.QueueDeclarePassive("orders", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return queue.Messages
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachTestSeesItsOwnQueueAlone(t *testing.T) {
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, channel := channelFor(t, nil)
			if !isConfirmed(t, channel) || depth(t, channel) != 1 {
				t.Fatal("the order of this test is not alone in its queue")
			}
			_, other := channelFor(t, nil)
			if depth(t, other) != 0 {
				t.Fatal("the order is in the queue of another vhost")
			}
		})
	}
}

func TestADeletedVHostIsGoneWithItsConnections(t *testing.T) {
	var vhost *VHost
	closed := make(chan *amqp.Error, 1)
	t.Run("it lives", func(t *testing.T) {
		var channel *amqp.Channel
		vhost, channel = channelFor(t, nil)
		channel.NotifyClose(closed)
	})
	if reason := <-closed; reason.Code != 320 {
		t.Fatal(reason)
	}
	if _, err := amqp.Dial(vhost.URL); err == nil {
		t.Fatal("it is still there")
	}
}

func TestAPublishIsNackedAndPublishedAgain(t *testing.T) {
	vhost, channel := channelFor(t, nil)
	rule, err := vhost.Faults.Add("confirm_nack", Fields{"routing_key": "orders", "times": 1})
	must(t, err)
	if isConfirmed(t, channel) || !isConfirmed(t, channel) {
		t.Fatal("the first publish alone should be nacked")
	}
	if hits, err := vhost.Faults.Hits(rule); err != nil || hits != 1 {
		t.Fatal(hits, err)
	}
}

func TestRemovedAndClearedRulesHaveNoEffect(t *testing.T) {
	vhost, channel := channelFor(t, nil)
	other, _ := channelFor(t, nil)
	kept, err := other.Faults.Add("confirm_nack", nil)
	must(t, err)
	removed, err := vhost.Faults.Add("confirm_nack", nil)
	must(t, err)
	must(t, vhost.Faults.Remove(removed))
	_, err = vhost.Faults.Add("confirm_nack", nil)
	must(t, err)
	must(t, vhost.Faults.Clear())
	if !isConfirmed(t, channel) {
		t.Fatal("nacked")
	}
	if hits, err := shared.Faults.Hits(kept); err != nil || hits != 0 {
		t.Fatal(hits, err)
	}
	must(t, shared.Faults.Clear())
	if _, err := shared.Faults.Hits(kept); err == nil || err.Error() != "Not Found" {
		t.Fatal(err)
	}
}

func TestHeldDeliveriesAreReleasedOneByOne(t *testing.T) {
	vhost, channel := channelFor(t, nil)
	held, err := vhost.Faults.Add("hold_delivery", Fields{"queue": "orders"})
	must(t, err)
	isConfirmed(t, channel)
	isConfirmed(t, channel)
	orders, err := channel.Consume("orders", "", true, false, false, false, nil)
	must(t, err)
	for range [2]int{} {
		if count, err := vhost.Faults.Release(held, 1); err != nil || count != 1 {
			t.Fatal(count, err)
		}
		<-orders
	}
}

func TestHalfAnHourPassesAtOnce(t *testing.T) {
	_, channel := channelFor(t, amqp.Table{"x-message-ttl": 1_800_000})
	isConfirmed(t, channel)
	must(t, shared.Clock.Advance(29*time.Minute))
	if depth(t, channel) != 1 {
		t.Fatal("it expired before its time")
	}
	must(t, shared.Clock.Advance(time.Minute))
	if depth(t, channel) != 0 {
		t.Fatal("it has not expired")
	}
}

func TestAClockThatATestHasFrozenRunsAgainAfterTheTest(t *testing.T) {
	t.Run("it freezes", func(t *testing.T) {
		vhost := shared.VHost(t)
		must(t, vhost.Broker.Clock.Freeze())
		t.Run("a part", func(t *testing.T) { shared.VHost(t) })
		frozen, err := shared.Clock.Now()
		must(t, err)
		must(t, shared.Clock.Advance(5*time.Millisecond))
		if now, err := shared.Clock.Now(); err != nil || now.Sub(frozen) != 5*time.Millisecond {
			t.Fatal(now, err)
		}
	})
	if state, err := shared.Clock.state(); err != nil || state.IsFrozen {
		t.Fatal(state, err)
	}
}

func TestBadInputIsRefusedWithTheReasonOfTheBroker(t *testing.T) {
	vhost := shared.VHost(t)
	if _, err := vhost.Faults.Add("confirm_nack", Fields{"event": "publish"}); err == nil ||
		!strings.HasPrefix(err.Error(), "a fault has no field 'event', ") ||
		!strings.HasSuffix(err.Error(), "did you mean 'on'?") {
		t.Fatal(err)
	}
	if err := shared.Clock.Advance(-time.Millisecond); err == nil || err.Error() != "the clock cannot go back: -1 ms" {
		t.Fatal(err)
	}
	if _, err := vhost.Faults.Add("confirm_nack", Fields{"times": func() {}}); err == nil {
		t.Fatal("a function is no number")
	}
}

func TestAVHostEndsWithItsBroker(t *testing.T) {
	broker := ForTest(t)
	broker.VHost(t)
	broker.Stop()
}

func TestTheLoginOfTheBrokerIsThatOfItsVHosts(t *testing.T) {
	t.Setenv("RABBITMQ_DEFAULT_PASS", "se:cr/t é")
	connection, err := amqp.Dial(ForTest(t).VHost(t).URL)
	must(t, err)
	must(t, connection.Close())
}

func TestABrokerWithoutItsHTTPAPISaysSo(t *testing.T) {
	if err := ForTest(t, "--no-management").Clock.Freeze(); err == nil ||
		!strings.HasPrefix(err.Error(), "the HTTP API is not served") {
		t.Fatal(err)
	}
}
