// Command confirm-publisher publishes numbered messages to a RabbitMQ-compatible broker and prints the id of each
// message that the broker has confirmed. When the connection or channel is lost, it reconnects and publishes an
// unconfirmed message again with the same id, so every message arrives at least once.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	dialTimeout  = 10 * time.Second
	closeTimeout = 300 * time.Millisecond
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg, err := configFromEnv()
	if err != nil {
		log.Error("bad configuration", "error", err)
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second Ctrl+C ends the process at once.

	p := newPublisher(cfg, log, os.Stdout)
	err = p.run(ctx)
	fmt.Printf("summary confirmed=%d republished=%d reconnected=%d\n", p.confirmed, p.republished, p.reconnected)
	if err != nil && ctx.Err() == nil {
		log.Error("publisher failed", "error", err)
		os.Exit(1)
	}
}

type config struct {
	url            string
	exchange       string
	queue          string
	routingKey     string
	messages       int // 0: until cancelled
	interval       time.Duration
	confirmTimeout time.Duration
	retryInterval  time.Duration
	maxAttempts    int // 0: no limit
}

func configFromEnv() (config, error) {
	var errs []error
	text := func(name, fallback string) string {
		if value := os.Getenv(name); value != "" {
			return value
		}
		return fallback
	}
	number := func(name, fallback string) int {
		value, err := strconv.Atoi(text(name, fallback))
		if err != nil || value < 0 {
			errs = append(errs, fmt.Errorf("%s must be a whole number from 0, not %q", name, os.Getenv(name)))
		}
		return value
	}
	duration := func(name, fallback string) time.Duration {
		value, err := time.ParseDuration(text(name, fallback))
		if err != nil || value < 0 {
			errs = append(errs, fmt.Errorf("%s must be a duration such as 500ms or 5s, not %q", name, os.Getenv(name)))
		}
		return value
	}
	cfg := config{
		url:            text("AMQP_URL", "amqp://guest:guest@localhost:5672/"),
		exchange:       text("EXCHANGE", "orders"),
		queue:          text("QUEUE", "orders"),
		routingKey:     text("ROUTING_KEY", "order.created"),
		messages:       number("MESSAGES", "0"),
		interval:       duration("INTERVAL", "1s"),
		confirmTimeout: duration("CONFIRM_TIMEOUT", "5s"),
		retryInterval:  duration("RETRY_INTERVAL", "1s"),
		maxAttempts:    number("MAX_ATTEMPTS", "10"),
	}
	if _, err := amqp.ParseURI(cfg.url); err != nil {
		// The cause may quote the URL, and with it the password.
		errs = append(errs, errors.New("AMQP_URL must look like amqp://user:password@host:5672/vhost"))
	}
	return cfg, errors.Join(errs...)
}

// session is one connection with its channel in confirm mode. It never recovers: after an error it is closed, and a
// new session replaces it.
type session struct {
	conn           *amqp.Connection
	channel        *amqp.Channel
	connClosed     chan *amqp.Error
	channelClosed  chan *amqp.Error
	confirms       chan amqp.Confirmation
	returns        chan amqp.Return
	detachFromStop func() bool
}

// openSession dials once, declares exchange, queue and binding, and selects confirm mode.
func openSession(ctx context.Context, cfg config) (_ *session, err error) {
	s := &session{detachFromStop: func() bool { return true }}
	defer func() {
		if err != nil {
			s.close()
		}
	}()

	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("confirm-publisher")
	s.conn, err = amqp.DialConfig(cfg.url, amqp.Config{
		Properties: properties,
		Dial: func(network, address string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: dialTimeout}
			socket, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			// The library's calls take no context, so a silent broker could block them after the cancellation.
			// A closed socket ends them all.
			s.detachFromStop = context.AfterFunc(ctx, func() {
				time.AfterFunc(closeTimeout, func() { socket.Close() })
			})
			// For the handshake only: the library removes the deadline when the connection is open.
			return socket, socket.SetDeadline(time.Now().Add(dialTimeout))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if s.channel, err = s.conn.Channel(); err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	// A buffer of one never blocks the library, because at most one message is in flight.
	s.connClosed = s.conn.NotifyClose(make(chan *amqp.Error, 1))
	s.channelClosed = s.channel.NotifyClose(make(chan *amqp.Error, 1))
	s.confirms = s.channel.NotifyPublish(make(chan amqp.Confirmation, 1))
	s.returns = s.channel.NotifyReturn(make(chan amqp.Return, 1))

	if err = s.channel.ExchangeDeclare(cfg.exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
		return nil, fmt.Errorf("declare exchange %q: %w", cfg.exchange, err)
	}
	if _, err = s.channel.QueueDeclare(cfg.queue, true, false, false, false, nil); err != nil {
		return nil, fmt.Errorf("declare queue %q: %w", cfg.queue, err)
	}
	if err = s.channel.QueueBind(cfg.queue, cfg.routingKey, cfg.exchange, false, nil); err != nil {
		return nil, fmt.Errorf("bind queue %q: %w", cfg.queue, err)
	}
	if err = s.channel.Confirm(false); err != nil {
		return nil, fmt.Errorf("confirm mode: %w", err)
	}
	return s, nil
}

func (s *session) close() {
	if s.conn != nil {
		// Ignore the error: the connection counts as closed in any case.
		_ = s.conn.CloseDeadline(time.Now().Add(closeTimeout))
	}
	s.detachFromStop()
}

// publish sends one message and returns nil once the broker has confirmed and not returned it.
func (s *session) publish(ctx context.Context, cfg config, message amqp.Publishing) error {
	if err := s.channel.PublishWithContext(ctx, cfg.exchange, cfg.routingKey, true, false, message); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	timeout := time.NewTimer(cfg.confirmTimeout)
	defer timeout.Stop()
	select {
	case confirmation, ok := <-s.confirms:
		if !ok {
			return lost("channel", <-s.channelClosed)
		}
		if !confirmation.Ack {
			return errors.New("nacked by the broker")
		}
	case reason := <-s.connClosed:
		return lost("connection", reason)
	case reason := <-s.channelClosed:
		return lost("channel", reason)
	case <-timeout.C:
		return fmt.Errorf("no confirmation within %s", cfg.confirmTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
	// The broker also confirms an unroutable message, but returns it first.
	select {
	case returned, ok := <-s.returns:
		if ok {
			return fmt.Errorf("returned by the broker: %d %s", returned.ReplyCode, returned.ReplyText)
		}
	default:
	}
	return nil
}

// pause waits until the next message is due. It returns an error if the connection or channel is lost meanwhile.
func (s *session) pause(ctx context.Context, interval time.Duration) error {
	due := time.NewTimer(interval)
	defer due.Stop()
	select {
	case <-due.C:
		return nil
	case reason := <-s.connClosed:
		return lost("connection", reason)
	case reason := <-s.channelClosed:
		return lost("channel", reason)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func lost(what string, reason *amqp.Error) error {
	if reason == nil {
		reason = amqp.ErrClosed
	}
	return fmt.Errorf("%s lost: %w", what, reason)
}

// publisher numbers the messages of one run and publishes all of them, over several sessions if necessary.
type publisher struct {
	cfg   config
	log   *slog.Logger
	out   io.Writer
	runID string

	hasConnected bool
	started      int // messages published at least once; confirmed or confirmed+1
	confirmed    int
	republished  int
	reconnected  int
}

func newPublisher(cfg config, log *slog.Logger, out io.Writer) *publisher {
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		panic(err) // The system has no source of randomness.
	}
	return &publisher{cfg: cfg, log: log, out: out, runID: hex.EncodeToString(random)}
}

// run publishes until all messages are confirmed (nil), the context is cancelled, or connecting fails for good.
func (p *publisher) run(ctx context.Context) error {
	for {
		s, err := p.connect(ctx)
		if err != nil {
			return err
		}
		err = p.publishAll(ctx, s)
		s.close()
		if err == nil || ctx.Err() != nil {
			return err
		}
		p.log.Warn("reconnecting", "error", err, "confirmed", p.confirmed, "in", p.cfg.retryInterval)
		if err := sleep(ctx, p.cfg.retryInterval); err != nil {
			return err
		}
		p.reconnected++
	}
}

// connect tries to open a session until it succeeds, the attempts are used up, or the broker refuses it.
func (p *publisher) connect(ctx context.Context) (*session, error) {
	for attempt := 1; ; attempt++ {
		s, err := openSession(ctx, p.cfg)
		switch {
		case err == nil:
			p.hasConnected = true
			p.log.Info("connected", "broker", s.conn.RemoteAddr().String(), "exchange", p.cfg.exchange, "queue", p.cfg.queue)
			return s, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case isRefusal(err, p.hasConnected):
			return nil, fmt.Errorf("refused by the broker: %w", err)
		case attempt == p.cfg.maxAttempts:
			return nil, fmt.Errorf("gave up after %d attempts to connect: %w", attempt, err)
		}
		p.log.Warn("cannot connect", "attempt", attempt, "error", err, "retry_in", p.cfg.retryInterval)
		if err := sleep(ctx, p.cfg.retryInterval); err != nil {
			return nil, err
		}
	}
}

// publishAll continues with the first unconfirmed message.
func (p *publisher) publishAll(ctx context.Context, s *session) error {
	for {
		number := p.confirmed + 1
		if number <= p.started {
			p.republished++
		}
		p.started = number

		id := fmt.Sprintf("%s-%d", p.runID, number)
		err := s.publish(ctx, p.cfg, amqp.Publishing{
			ContentType:  "text/plain",
			DeliveryMode: amqp.Persistent,
			MessageId:    id, // Consumers detect duplicates by it.
			Timestamp:    time.Now(),
			Body:         []byte(fmt.Sprintf("message %d", number)),
		})
		if err != nil {
			return fmt.Errorf("message %s is not confirmed: %w", id, err)
		}
		p.confirmed = number
		fmt.Fprintln(p.out, "confirmed", id)

		if number == p.cfg.messages {
			return nil
		}
		if err := s.pause(ctx, p.cfg.interval); err != nil {
			return err
		}
	}
}

// isRefusal reports whether a retry would fail in the same way: a wrong user or password, a missing vhost, or an
// exchange or queue that exists with other arguments.
func isRefusal(err error, hasConnected bool) bool {
	var reason *amqp.Error
	if !errors.As(err, &reason) {
		return false
	}
	if !reason.Server {
		// RabbitMQ answers a wrong password by closing the socket, which the library reports as ErrCredentials. A
		// broker that dies at this moment looks the same, so credentials that have worked count as correct.
		return reason == amqp.ErrCredentials && !hasConnected
	}
	switch reason.Code {
	case amqp.AccessRefused, amqp.NotAllowed, amqp.PreconditionFailed:
		return true
	}
	return false
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
