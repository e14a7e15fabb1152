package amqpbroker

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
)

// A VHost is the vhost of a test.
type VHost struct {
	Name string
	// URL is amqp://guest:guest@127.0.0.1:PORT/NAME.
	URL    string
	Broker *Broker
	// Faults are the fault rules of this vhost.
	Faults *Faults
}

// VHost creates a vhost for a test, with a name of its own. At the end of the test its connections are closed, and it
// is deleted with its fault rules; the clock runs again if it ran before. The test fails if the broker refuses.
func (broker *Broker) VHost(t testing.TB) *VHost {
	t.Helper()
	number := make([]byte, 6)
	if _, err := rand.Read(number); err != nil {
		t.Fatal(err)
	}
	name := "test-" + hex.EncodeToString(number)
	before, err := broker.Clock.state()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.request(http.MethodPut, "/api/vhosts/"+name, nil, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The vhosts of a stopped broker are gone.
		if broker.isStopped.Load() {
			return
		}
		if err := broker.request(http.MethodDelete, "/api/vhosts/"+name, nil, nil); err != nil {
			t.Error(err)
		}
		// The clock is the next test's, too.
		if !before.IsFrozen {
			if err := broker.Clock.Resume(); err != nil {
				t.Error(err)
			}
		}
	})
	address := broker.URL[:strings.LastIndex(broker.URL, "/")+1] + name
	return &VHost{Name: name, URL: address, Broker: broker, Faults: &Faults{broker, name}}
}
