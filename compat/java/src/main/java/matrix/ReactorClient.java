package matrix;

import static java.nio.charset.StandardCharsets.UTF_8;
import static matrix.Player.ask;
import static matrix.Player.check;
import static matrix.Player.factory;
import static matrix.Player.name;
import static matrix.Player.next;
import static matrix.Player.none;
import static matrix.Player.same;
import static reactor.rabbitmq.BindingSpecification.exchangeBinding;
import static reactor.rabbitmq.BindingSpecification.queueBinding;
import static reactor.rabbitmq.ExchangeSpecification.exchange;
import static reactor.rabbitmq.QueueSpecification.queue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.ShutdownSignalException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import javax.net.ssl.SSLHandshakeException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;
import reactor.rabbitmq.AcknowledgableDelivery;
import reactor.rabbitmq.ConsumeOptions;
import reactor.rabbitmq.OutboundMessage;
import reactor.rabbitmq.OutboundMessageResult;
import reactor.rabbitmq.RabbitFlux;
import reactor.rabbitmq.Receiver;
import reactor.rabbitmq.ReceiverOptions;
import reactor.rabbitmq.RpcClient;
import reactor.rabbitmq.SendOptions;
import reactor.rabbitmq.Sender;
import reactor.rabbitmq.SenderOptions;

/** Reactor RabbitMQ: reactive streams over the Java client. */
public final class ReactorClient {
    private static final Duration PATIENCE = Duration.ofSeconds(Player.PATIENCE_S);

    /** A sender and a receiver on one connection. */
    private static final class Flow implements AutoCloseable {
        final Mono<Connection> connection;
        final Sender sender;
        final Receiver receiver;

        Flow(ConnectionFactory factory) {
            connection = Mono.fromCallable(() -> factory.newConnection("reactor")).cache();
            sender = RabbitFlux.createSender(new SenderOptions().connectionMono(connection));
            receiver = RabbitFlux.createReceiver(new ReceiverOptions().connectionMono(connection));
        }

        Flow() throws Exception {
            this(factory());
        }

        /** Declare a queue that its consumer's end or this connection's takes away. */
        String declare(String stem, Map<String, Object> arguments) {
            var specification = queue(name(stem)).exclusive(true).autoDelete(true).arguments(arguments);
            return sender.declareQueue(specification).block(PATIENCE).getQueue();
        }

        void send(String queue, String... bodies) {
            sender.send(Flux.fromArray(bodies).map(body -> message("", queue, body))).block(PATIENCE);
        }

        List<OutboundMessageResult> confirmed(SendOptions options, OutboundMessage... messages) {
            return sender.sendWithPublishConfirms(Flux.fromArray(messages), options)
                    .collectList()
                    .block(PATIENCE);
        }

        BlockingQueue<Delivery> consume(String queue) {
            BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
            receiver.consumeAutoAck(queue).subscribe(deliveries::add, Throwable::printStackTrace);
            return deliveries;
        }

        BlockingQueue<AcknowledgableDelivery> consumeManually(String queue, ConsumeOptions options) {
            BlockingQueue<AcknowledgableDelivery> deliveries = new LinkedBlockingQueue<>();
            receiver.consumeManualAck(queue, options).subscribe(deliveries::add, Throwable::printStackTrace);
            return deliveries;
        }

        @Override
        public void close() {
            receiver.close();
            sender.close();
        }
    }

    private ReactorClient() {}

    public static void main(String[] names) {
        Player.play(
                names,
                Map.ofEntries(
                        Map.entry("connect", ReactorClient::connect),
                        Map.entry("topology", ReactorClient::topology),
                        Map.entry("confirms", ReactorClient::confirms),
                        Map.entry("returns", ReactorClient::returns),
                        Map.entry("consume", ReactorClient::consume),
                        Map.entry("requeue", ReactorClient::requeue),
                        Map.entry("dead_letter", ReactorClient::deadLetter),
                        Map.entry("ttl", ReactorClient::ttl),
                        Map.entry("priority", ReactorClient::priority),
                        Map.entry("rpc", ReactorClient::rpc),
                        Map.entry("server_named", ReactorClient::serverNamed),
                        Map.entry("cancel", ReactorClient::cancel),
                        Map.entry("stream", ReactorClient::stream),
                        Map.entry("large", ReactorClient::large),
                        Map.entry("tls", ReactorClient::tls),
                        Map.entry("wrong_password", ReactorClient::wrongPassword),
                        Map.entry("forced_close", ReactorClient::forcedClose),
                        Map.entry("reconnect", ReactorClient::reconnect)));
    }

    private static OutboundMessage message(String exchange, String key, String body) {
        return new OutboundMessage(exchange, key, body.getBytes(UTF_8));
    }

    private static OutboundMessage message(String queue, String body, AMQP.BasicProperties.Builder properties) {
        return new OutboundMessage("", queue, properties.build(), body.getBytes(UTF_8));
    }

    private static AMQP.BasicProperties.Builder properties() {
        return new AMQP.BasicProperties.Builder();
    }

    private static String text(Delivery delivery) {
        return new String(delivery.getBody(), UTF_8);
    }

    private static void expect(BlockingQueue<? extends Delivery> deliveries, String... bodies) throws Exception {
        for (String body : bodies) {
            same(body, text(next(deliveries)));
        }
    }

    /** Expect an error that comes from a channel closed with the reply code. */
    private static void refused(int code, Mono<?> work) {
        try {
            work.block(PATIENCE);
        } catch (RuntimeException error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof ShutdownSignalException signal) {
                    same(code, ((AMQP.Channel.Close) signal.getReason()).getReplyCode());
                    return;
                }
            }
            throw error;
        }
        check(false, "not refused with " + code);
    }

    private static void connect() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("connect", null);
            var sent = properties().messageId("m1").headers(Map.of("n", 1L));
            flow.sender.send(Mono.just(message(queue, "hello", sent))).block(PATIENCE);
            Delivery delivery = next(flow.consume(queue));
            same("hello", text(delivery));
            same("m1", delivery.getProperties().getMessageId());
            same(Map.of("n", 1L), delivery.getProperties().getHeaders());
        }
    }

    private static void topology() throws Exception {
        try (Flow flow = new Flow()) {
            Sender sender = flow.sender;
            String events = name("events");
            String archive = name("archive");
            String queue = name("topology");
            sender.declare(exchange(events).type("topic").durable(true))
                    .then(sender.declare(exchange(archive).type("fanout").durable(true)))
                    .then(sender.declare(queue(queue).durable(true)))
                    .then(sender.bindExchange(exchangeBinding(events, "order.#", archive)))
                    .then(sender.bind(queueBinding(archive, "", queue)))
                    .block(PATIENCE);
            sender.send(Mono.just(message(events, "order.created", "1"))).block(PATIENCE);
            expect(flow.consume(queue), "1");
            refused(404, sender.declare(queue(name("missing")).passive(true)));
            refused(406, sender.declare(queue(queue).durable(false)));
            // The library takes an exchange that is unbound from where it has the queue.
            sender.unbindExchange(queueBinding(events, "order.#", archive))
                    .then(sender.unbind(queueBinding(archive, "", queue)))
                    .then(sender.delete(queue(queue)))
                    .then(sender.delete(exchange(events)))
                    .then(sender.delete(exchange(archive)))
                    .block(PATIENCE);
            refused(404, sender.declare(queue(queue).passive(true)));
        }
    }

    private static void confirms() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("confirms", null);
            OutboundMessage[] messages = new OutboundMessage[100];
            Arrays.setAll(messages, i -> message(queue, "" + i, properties().deliveryMode(2)));
            List<OutboundMessageResult> results = flow.confirmed(new SendOptions(), messages);
            same(100, results.size());
            check(results.stream().allMatch(OutboundMessageResult::isAck), "nacked");
        }
    }

    private static void returns() throws Exception {
        try (Flow flow = new Flow()) {
            var options = new SendOptions().trackReturned(true); // publishes as mandatory
            OutboundMessageResult result =
                    flow.confirmed(options, message("", name("nobody"), "lost")).get(0);
            check(result.isAck() && result.isReturned(), result);
        }
    }

    private static void consume() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("consume", null);
            flow.send(queue, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9");
            var deliveries = flow.consumeManually(queue, new ConsumeOptions().qos(3));
            expect(deliveries, "0", "1");
            AcknowledgableDelivery third = next(deliveries);
            none(deliveries);
            third.ack(true);
            expect(deliveries, "3", "4", "5");
        }
    }

    private static void requeue() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("requeue", null);
            var deliveries = flow.consumeManually(queue, new ConsumeOptions());
            flow.send(queue, "again");
            AcknowledgableDelivery first = next(deliveries);
            same(false, first.getEnvelope().isRedeliver());
            first.nack(true);
            AcknowledgableDelivery second = next(deliveries);
            same(true, second.getEnvelope().isRedeliver());
            second.ack();
        }
    }

    @SuppressWarnings("unchecked")
    private static void deadLetter() throws Exception {
        try (Flow flow = new Flow()) {
            String work = name("work");
            String wait = name("wait");
            flow.declare("work", Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", wait));
            flow.declare(
                    "wait",
                    Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", work, "x-message-ttl", 200));
            var deliveries = flow.consumeManually(work, new ConsumeOptions());
            flow.send(work, "try");
            next(deliveries).nack(false);
            AcknowledgableDelivery second = next(deliveries);
            second.ack();
            List<String> history = new ArrayList<>();
            for (Object death : (List<Object>) second.getProperties().getHeaders().get("x-death")) {
                Map<String, Object> one = (Map<String, Object>) death;
                history.add(one.get("reason") + " " + one.get("queue") + " " + one.get("count"));
            }
            same(List.of("expired " + wait + " 1", "rejected " + work + " 1"), history);
        }
    }

    private static void ttl() throws Exception {
        try (Flow flow = new Flow()) {
            String dead = flow.declare("dead", null);
            Map<String, Object> toDead =
                    new HashMap<>(Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
            String own = flow.declare("own", Map.copyOf(toDead));
            toDead.put("x-message-ttl", 200);
            String all = flow.declare("all", toDead);
            BlockingQueue<Delivery> deliveries = flow.consume(dead);
            flow.sender.send(Mono.just(message(own, "own", properties().expiration("100")))).block(PATIENCE);
            expect(deliveries, "own");
            flow.send(all, "all");
            expect(deliveries, "all");
        }
    }

    private static void priority() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("priority", Map.of("x-max-priority", 5));
            Flux<Integer> priorities = Flux.just(1, 5, 3);
            flow.sender.send(priorities.map(p -> message(queue, "" + p, properties().priority(p)))).block(PATIENCE);
            expect(flow.consume(queue), "5", "3", "1");
        }
    }

    private static void rpc() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("rpc", null);
            Flux<OutboundMessage> answers = flow.receiver.consumeAutoAck(queue).map(question -> {
                var properties = question.getProperties();
                return message(
                        properties.getReplyTo(),
                        text(question).toUpperCase(),
                        properties().correlationId(properties.getCorrelationId()));
            });
            flow.sender.send(answers).subscribe();
            // Its replies come through amq.rabbitmq.reply-to.
            try (RpcClient client = flow.sender.rpcClient("", queue)) {
                var question = new RpcClient.RpcRequest("question".getBytes(UTF_8));
                same("QUESTION", text(client.rpc(Mono.just(question)).block(PATIENCE)));
            }
        }
    }

    private static void serverNamed() throws Exception {
        try (Flow flow = new Flow();
                Flow other = new Flow()) {
            String named = flow.sender.declare(queue()).block(PATIENCE).getQueue();
            check(named.startsWith("amq.gen-"), named);
            refused(405, other.sender.declare(queue(named).passive(true)));
        }
    }

    private static void cancel() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("cancel", null);
            BlockingQueue<SignalType> ended = new LinkedBlockingQueue<>();
            BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
            flow.receiver.consumeNoAck(queue).doFinally(ended::add).subscribe(deliveries::add);
            flow.send(queue, "1");
            expect(deliveries, "1");
            flow.sender.delete(queue(queue)).block(PATIENCE);
            same(SignalType.ON_COMPLETE, next(ended));
        }
    }

    private static void stream() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = name("stream");
            var specification = queue(queue).durable(true).arguments(Map.of("x-queue-type", "stream"));
            flow.sender.declare(specification).block(PATIENCE);
            OutboundMessage[] messages = new OutboundMessage[10];
            Arrays.setAll(messages, i -> message("", queue, "" + i));
            same(10, flow.confirmed(new SendOptions(), messages).size());
            for (Object offset : List.of("first", 7L)) {
                var options = new ConsumeOptions().qos(10).arguments(Map.of("x-stream-offset", offset));
                List<String> read = flow.receiver.consumeManualAck(queue, options)
                        .doOnNext(AcknowledgableDelivery::ack)
                        .map(ReactorClient::text)
                        .take(3)
                        .collectList()
                        .block(PATIENCE);
                same(offset.equals("first") ? List.of("0", "1", "2") : List.of("7", "8", "9"), read);
            }
            flow.sender.delete(queue(queue)).block(PATIENCE);
        }
    }

    private static void large() throws Exception {
        try (Flow flow = new Flow()) {
            String queue = flow.declare("large", null);
            byte[] body = Player.largeBody();
            flow.sender.send(Mono.just(new OutboundMessage("", queue, body))).block(PATIENCE);
            check(Arrays.equals(body, next(flow.consume(queue)).getBody()), "not what was sent");
        }
    }

    private static void tls() throws Exception {
        try (Flow flow = new Flow(Player.tlsFactory(true))) {
            String queue = flow.declare("tls", null);
            flow.send(queue, "secret");
            expect(flow.consume(queue), "secret");
        }
        fails(Player.tlsFactory(false), SSLHandshakeException.class);
    }

    private static void wrongPassword() throws Exception {
        ConnectionFactory factory = factory();
        factory.setPassword("wrong");
        fails(factory, AuthenticationFailureException.class);
    }

    /** Expect that nothing can be declared because the connection fails with this error. */
    private static void fails(ConnectionFactory factory, Class<? extends Exception> error) {
        Sender sender = RabbitFlux.createSender(new SenderOptions().connectionFactory(factory));
        try {
            sender.declare(queue()).block(PATIENCE);
        } catch (RuntimeException failure) {
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                if (error.isInstance(cause)) {
                    return;
                }
            }
            throw failure;
        } finally {
            sender.close();
        }
        check(false, "no " + error.getSimpleName());
    }

    /** A flux of deliveries goes on after the loss of its connection, and a sender sends again. */
    private static void survives(String what) throws Exception {
        try (Flow flow = new Flow()) {
            BlockingQueue<String> closes = new LinkedBlockingQueue<>();
            flow.connection.block(PATIENCE).addShutdownListener(signal -> closes.add(
                    signal.getReason() instanceof AMQP.Connection.Close close ? "" + close.getReplyCode() : "lost"));
            String durable = name("durable-" + what);
            flow.sender.declare(queue(durable).durable(true)).block(PATIENCE);
            String news = flow.declare("news-" + what, null);
            BlockingQueue<Delivery> deliveries = flow.consume(news);
            flow.confirmed(new SendOptions(), message(durable, "kept", properties().deliveryMode(2)));
            flow.send(news, "before");
            expect(deliveries, "before");
            ask(what);
            same("320", next(closes));
            // The Java client below declares the queue and consumes again.
            Mono.defer(() -> flow.sender.declare(queue(news).passive(true)))
                    .filter(declared -> declared.getConsumerCount() == 1)
                    .switchIfEmpty(Mono.error(new IllegalStateException("nobody consumes")))
                    .retryWhen(reactor.util.retry.Retry.fixedDelay(40, Duration.ofMillis(250)))
                    .block(PATIENCE);
            flow.send(news, "after");
            expect(deliveries, "after");
            expect(flow.consume(durable), "kept");
        }
    }

    private static void forcedClose() throws Exception {
        survives("CLOSE");
    }

    private static void reconnect() throws Exception {
        survives("RESTART");
    }
}
