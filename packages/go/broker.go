// Package amqpbroker starts amqp-broker, an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ, for
// the tests of a project.
package amqpbroker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// It prints where the broker is, and ends when the pipe to it is closed: when this process ends, however it ends.
const waiting = `printf '%s\n%s\n' "$AMQP_URL" "$RABBITMQ_MANAGEMENT_URL"; exec cat`

// ErrMissing says that the program is not installed.
var ErrMissing = errors.New("amqp-broker is not installed: put the file amqp-broker into PATH, or name it in AMQP_BROKER_PROGRAM")

// A Broker is a running broker on free ports, which keeps everything in memory.
type Broker struct {
	// URL is amqp://guest:guest@127.0.0.1:PORT/%2F.
	URL string
	// ManagementURL is that of RabbitMQ's HTTP API and of the web page.
	ManagementURL string
	Clock         *Clock
	// Faults are the fault rules of all vhosts, and of connections that have none yet.
	Faults *Faults

	command   *exec.Cmd
	pipe      io.WriteCloser
	stop      sync.Once
	isStopped atomic.Bool
	failure   error
}

// Start starts a broker with options of `amqp-broker serve`, such as "--compat", "4.3". It ends with this process at the
// latest. The program is amqp-broker in PATH, or the file that the variable AMQP_BROKER_PROGRAM names.
func Start(options ...string) (*Broker, error) {
	program := os.Getenv("AMQP_BROKER_PROGRAM")
	if program == "" {
		program = "amqp-broker"
	}
	words := append([]string{"run"}, options...)
	command := exec.Command(program, append(words, "--", "sh", "-c", waiting)...)
	var failure bytes.Buffer
	command.Stderr = &failure
	pipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, ErrMissing
	} else if err != nil {
		return nil, err
	}
	reader := bufio.NewReader(output)
	url, _ := reader.ReadString('\n')
	management, err := reader.ReadString('\n')
	if err != nil {
		pipe.Close()
		command.Wait()
		reason := strings.TrimSpace(failure.String())
		if reason == "" {
			reason = "it printed no address"
		}
		return nil, fmt.Errorf("%s did not start: %s (%s)", program, reason, command.ProcessState)
	}
	broker := &Broker{URL: strings.TrimSpace(url), ManagementURL: strings.TrimSpace(management), command: command, pipe: pipe}
	broker.Clock, broker.Faults = &Clock{broker}, &Faults{broker: broker}
	return broker, nil
}

// Stop stops the broker, and returns when it has ended. It may be called again.
func (broker *Broker) Stop() error {
	broker.stop.Do(func() {
		broker.isStopped.Store(true)
		broker.pipe.Close()
		broker.failure = broker.command.Wait()
	})
	return broker.failure
}

// ForTest starts a broker for a test, and stops it at its end. The test fails if the broker does not start.
func ForTest(t testing.TB, options ...string) *Broker {
	t.Helper()
	broker, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Stop() })
	return broker
}
