package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestEnvironmentOverridesTheDefaults(t *testing.T) {
	t.Setenv("AMQP_URL", "")
	t.Setenv("QUEUE", "invoices")
	t.Setenv("MESSAGES", "3")
	t.Setenv("CONFIRM_TIMEOUT", "250ms")
	cfg, err := configFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.url != "amqp://guest:guest@localhost:5672/" || cfg.queue != "invoices" || cfg.messages != 3 ||
		cfg.confirmTimeout != 250*time.Millisecond {
		t.Errorf("got %+v", cfg)
	}
}

func TestBadSettingsAreAllNamedAndThePasswordIsNot(t *testing.T) {
	t.Setenv("AMQP_URL", "amqp://guest:secret@host:port/")
	t.Setenv("MESSAGES", "-1")
	t.Setenv("INTERVAL", "5")
	_, err := configFromEnv()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"AMQP_URL", "MESSAGES", "INTERVAL"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in %q", name, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is in %q", err)
	}
}

func TestWhatIsPointlessToTryAgain(t *testing.T) {
	for _, c := range []struct {
		err          error
		hasConnected bool
		refusal      bool
	}{
		{&amqp.Error{Code: amqp.PreconditionFailed, Server: true}, true, true},
		{fmt.Errorf("dial: %w", &amqp.Error{Code: amqp.NotAllowed, Server: true}), false, true},
		{fmt.Errorf("dial: %w", amqp.ErrCredentials), false, true},
		{fmt.Errorf("dial: %w", amqp.ErrCredentials), true, false},
		{&amqp.Error{Code: amqp.ConnectionForced, Server: true}, false, false},
		{io.EOF, false, false},
	} {
		if isRefusal(c.err, c.hasConnected) != c.refusal {
			t.Errorf("isRefusal(%v, %v) is not %v", c.err, c.hasConnected, c.refusal)
		}
	}
}

func TestDialingEndsAfterTheLastAttempt(t *testing.T) {
	listener := listen(t)
	listener.Close()
	var log bytes.Buffer
	p := newPublisher(config{
		url:           "amqp://" + listener.Addr().String(),
		retryInterval: time.Millisecond,
		maxAttempts:   3,
	}, slog.New(slog.NewTextHandler(&log, nil)), io.Discard)

	err := p.run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "gave up after 3 attempts") {
		t.Errorf("got %v", err)
	}
	if retries := strings.Count(log.String(), "cannot connect"); retries != 2 {
		t.Errorf("%d retries in:\n%s", retries, &log)
	}
}

func TestCancellationEndsAHandshakeWithASilentPeer(t *testing.T) {
	listener := listen(t)
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		socket, err := listener.Accept()
		if err != nil {
			return
		}
		defer socket.Close()
		_, _ = io.ReadFull(socket, make([]byte, 8)) // AMQP's protocol header: the handshake has begun.
		cancel()
		_, _ = io.Copy(io.Discard, socket)
	}()
	p := newPublisher(config{url: "amqp://" + listener.Addr().String()}, slog.New(slog.NewTextHandler(io.Discard, nil)), io.Discard)

	began := time.Now()
	if err := p.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %s", took)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
