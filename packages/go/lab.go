package amqpbroker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Fields are those of a fault rule, such as {"routing_key": "orders.*", "times": 3}. The broker's page about faults
// explains them.
type Fields map[string]any

// A Rule is a fault rule that was added.
type Rule struct {
	ID int
}

// Faults are the fault rules of a vhost, or those of all vhosts and of connections that have none yet.
type Faults struct {
	broker *Broker
	vhost  string
}

// Add adds a rule, such as "confirm_nack". Fields may be nil. The error of a refused rule is the broker's reason.
func (faults *Faults) Add(action string, fields Fields) (Rule, error) {
	given := Fields{}
	if faults.vhost != "" {
		given["vhost"] = faults.vhost
	}
	for name, value := range fields {
		given[name] = value
	}
	given["action"] = action
	var rule Rule
	err := faults.broker.request(http.MethodPost, "/_broker/faults", given, &rule)
	return rule, err
}

// Hits returns how often a rule has hit.
func (faults *Faults) Hits(rule Rule) (int, error) {
	var state struct{ Hits int }
	err := faults.broker.request(http.MethodGet, rule.path(), nil, &state)
	return state.Hits, err
}

// Release makes the oldest deliveries that a rule "hold_delivery" holds, and returns how many it held.
func (faults *Faults) Release(rule Rule, count int) (int, error) {
	var done struct{ Released int }
	err := faults.broker.request(http.MethodPost, rule.path()+"/release", Fields{"count": count}, &done)
	return done.Released, err
}

// Remove removes a rule, and ends its effects on connections.
func (faults *Faults) Remove(rule Rule) error {
	return faults.broker.request(http.MethodDelete, rule.path(), nil, nil)
}

// Clear removes all rules.
func (faults *Faults) Clear() error {
	path := "/_broker/faults"
	if faults.vhost != "" {
		path += "?vhost=" + faults.vhost
	}
	return faults.broker.request(http.MethodDelete, path, nil, nil)
}

func (rule Rule) path() string {
	return fmt.Sprintf("/_broker/faults/%d", rule.ID)
}

// Clock is the clock of a broker, which is that of all its vhosts.
type Clock struct {
	broker *Broker
}

type clockState struct {
	NowMs    int64 `json:"now_ms"`
	IsFrozen bool  `json:"is_frozen"`
}

func (clock *Clock) state() (clockState, error) {
	var state clockState
	err := clock.broker.request(http.MethodGet, "/_broker/clock", nil, &state)
	return state, err
}

// Now returns the time of the broker.
func (clock *Clock) Now() (time.Time, error) {
	state, err := clock.state()
	return time.UnixMilli(state.NowMs), err
}

// Advance advances time by whole milliseconds. Everything that falls due meanwhile happens in order.
func (clock *Clock) Advance(duration time.Duration) error {
	return clock.broker.request(http.MethodPost, "/_broker/clock/advance", Fields{"ms": duration.Milliseconds()}, nil)
}

// Freeze stops the clock; Advance still moves it.
func (clock *Clock) Freeze() error {
	return clock.broker.request(http.MethodPost, "/_broker/clock/freeze", nil, nil)
}

// Resume lets the clock run again from its current time.
func (clock *Clock) Resume() error {
	return clock.broker.request(http.MethodPost, "/_broker/clock/resume", nil, nil)
}

// request sends a request to the HTTP API, and decodes the answer unless result is nil.
func (broker *Broker) request(method, path string, body, result any) error {
	if broker.ManagementURL == "" {
		return errors.New("the HTTP API is not served: an option of the broker says so")
	}
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, broker.ManagementURL+path, &sent)
	if err != nil {
		return err
	}
	address, err := url.Parse(broker.URL)
	if err != nil {
		return err
	}
	password, _ := address.User.Password()
	request.SetBasicAuth(address.User.Username(), password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		var refusal struct{ Reason string }
		if err := json.Unmarshal(text, &refusal); err != nil {
			return fmt.Errorf("%s: %s", answer.Status, text)
		}
		return errors.New(refusal.Reason)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}
