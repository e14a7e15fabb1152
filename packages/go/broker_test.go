package amqpbroker

import (
	"errors"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestAnOrderIsQueued(t *testing.T) {
	broker := ForTest(t, "--compat", "4.3")
	connection, err := amqp.Dial(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if version := connection.Properties["version"]; !strings.HasPrefix(version.(string), "4.3") {
		t.Fatal(version)
	}
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.QueueDeclare("orders", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := channel.Publish("", "orders", true, false, amqp.Publishing{Body: []byte("order 1")}); err != nil {
		t.Fatal(err)
	}
	order, _, err := channel.Get("orders", true)
	if err != nil || string(order.Body) != "order 1" {
		t.Fatal(string(order.Body), err)
	}
}

func TestAStoppedBrokerRefusesConnections(t *testing.T) {
	broker, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := amqp.Dial(broker.URL); err == nil {
		t.Fatal("it goes on")
	}
	if err := broker.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestAMissingProgramIsExplained(t *testing.T) {
	t.Setenv("AMQP_BROKER_PROGRAM", "/nowhere/amqp-broker")
	if _, err := Start(); !errors.Is(err, ErrMissing) {
		t.Fatal(err)
	}
}

func TestAWrongOptionIsTheTextOfTheError(t *testing.T) {
	if _, err := Start("--compat", "1.0"); err == nil || !strings.Contains(err.Error(), "1.0") {
		t.Fatal(err)
	}
}

func TestAProgramThatIsNoBrokerIsNamed(t *testing.T) {
	t.Setenv("AMQP_BROKER_PROGRAM", "/bin/true")
	if _, err := Start(); err == nil || err.Error() != "/bin/true did not start: it printed no address (exit status 0)" {
		t.Fatal(err)
	}
}
