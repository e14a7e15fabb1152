package matrix;

import static java.nio.charset.StandardCharsets.UTF_8;
import static matrix.Player.ask;
import static matrix.Player.check;
import static matrix.Player.factory;
import static matrix.Player.name;
import static matrix.Player.next;
import static matrix.Player.none;
import static matrix.Player.same;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.Return;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import com.rabbitmq.client.RpcServer;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import javax.net.ssl.SSLHandshakeException;

/** RabbitMQ's own Java client, with its automatic recovery of connections and topology. */
public final class JavaClient {
    private interface Work {
        void on(Connection connection, Channel channel) throws Exception;
    }

    private JavaClient() {}

    public static void main(String[] names) {
        Player.play(
                names,
                Map.ofEntries(
                        Map.entry("connect", JavaClient::connect),
                        Map.entry("topology", JavaClient::topology),
                        Map.entry("confirms", JavaClient::confirms),
                        Map.entry("returns", JavaClient::returns),
                        Map.entry("consume", JavaClient::consume),
                        Map.entry("requeue", JavaClient::requeue),
                        Map.entry("dead_letter", JavaClient::deadLetter),
                        Map.entry("ttl", JavaClient::ttl),
                        Map.entry("priority", JavaClient::priority),
                        Map.entry("rpc", JavaClient::rpc),
                        Map.entry("server_named", JavaClient::serverNamed),
                        Map.entry("cancel", JavaClient::cancel),
                        Map.entry("stream", JavaClient::stream),
                        Map.entry("large", JavaClient::large),
                        Map.entry("tls", JavaClient::tls),
                        Map.entry("wrong_password", JavaClient::wrongPassword),
                        Map.entry("forced_close", JavaClient::forcedClose),
                        Map.entry("reconnect", JavaClient::reconnect)));
    }

    private static void with(Work work) throws Exception {
        try (Connection connection = factory().newConnection(name("java"));
                Channel channel = connection.createChannel()) {
            work.on(connection, channel);
        }
    }

    /** Declare an exclusive queue. */
    private static String queue(Channel channel, String stem, Map<String, Object> arguments) throws IOException {
        return channel.queueDeclare(name(stem), false, true, true, arguments).getQueue();
    }

    private static void send(Channel channel, String queue, String body) throws IOException {
        channel.basicPublish("", queue, null, body.getBytes(UTF_8));
    }

    private static BlockingQueue<Delivery> consume(Channel channel, String queue, boolean autoAck) throws IOException {
        return consume(channel, queue, autoAck, Map.of());
    }

    private static BlockingQueue<Delivery> consume(
            Channel channel, String queue, boolean autoAck, Map<String, Object> arguments) throws IOException {
        BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
        channel.basicConsume(queue, autoAck, arguments, (tag, delivery) -> deliveries.add(delivery), tag -> {});
        return deliveries;
    }

    private static void expect(BlockingQueue<Delivery> deliveries, String... bodies) throws InterruptedException {
        for (String body : bodies) {
            same(body, text(next(deliveries)));
        }
    }

    private static String text(Delivery delivery) {
        return new String(delivery.getBody(), UTF_8);
    }

    /** Expect that the work ends a new channel with the reply code. */
    private static void refused(Connection connection, int code, Work work) throws Exception {
        try {
            work.on(connection, connection.createChannel());
        } catch (IOException error) {
            ShutdownSignalException signal = (ShutdownSignalException) error.getCause();
            same(code, ((AMQP.Channel.Close) signal.getReason()).getReplyCode());
            return;
        }
        check(false, "not refused with " + code);
    }

    private static void connect() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "connect", null);
            var properties = new AMQP.BasicProperties.Builder()
                    .contentType("text/plain")
                    .messageId("m1")
                    .headers(Map.of("n", 1L))
                    .build();
            channel.basicPublish("", queue, properties, "hello".getBytes(UTF_8));
            Delivery delivery = next(consume(channel, queue, true));
            same("hello", text(delivery));
            same(properties.getHeaders(), delivery.getProperties().getHeaders());
            same("m1", delivery.getProperties().getMessageId());
            same("RabbitMQ", connection.getServerProperties().get("product").toString());
        });
    }

    private static void topology() throws Exception {
        with((connection, channel) -> {
            String events = name("events");
            String archive = name("archive");
            String queue = name("topology");
            channel.exchangeDeclare(events, BuiltinExchangeType.TOPIC, true);
            channel.exchangeDeclare(archive, BuiltinExchangeType.FANOUT, true);
            channel.queueDeclare(queue, true, false, false, null);
            channel.exchangeBind(archive, events, "order.#");
            channel.queueBind(queue, archive, "");
            channel.basicPublish(events, "order.created", null, "1".getBytes(UTF_8));
            channel.exchangeUnbind(archive, events, "order.#");
            channel.basicPublish(events, "order.created", null, "2".getBytes(UTF_8));
            channel.queueUnbind(queue, archive, "");
            same(1, channel.queuePurge(queue).getMessageCount());
            refused(connection, 404, (c, other) -> other.queueDeclarePassive(name("missing")));
            refused(connection, 406, (c, other) -> other.queueDeclare(queue, false, false, false, null));
            channel.queueDelete(queue);
            channel.exchangeDelete(events);
            channel.exchangeDelete(archive);
        });
    }

    private static void confirms() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "confirms", null);
            channel.confirmSelect();
            for (int i = 0; i < 100; i++) {
                channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, new byte[10]);
            }
            channel.waitForConfirmsOrDie(Player.PATIENCE_S * 1000L);
            same(100L, channel.messageCount(queue));
        });
    }

    private static void returns() throws Exception {
        with((connection, channel) -> {
            BlockingQueue<Object> told = new LinkedBlockingQueue<>();
            channel.addReturnListener((Return returned) -> told.add(returned));
            channel.addConfirmListener((tag, multiple) -> told.add("ack"), (tag, multiple) -> told.add("nack"));
            channel.confirmSelect();
            channel.basicPublish("", name("nobody"), true, null, "lost".getBytes(UTF_8));
            Return returned = (Return) next(told);
            same(312, returned.getReplyCode());
            same("NO_ROUTE", returned.getReplyText());
            same("lost", new String(returned.getBody(), UTF_8));
            same("ack", next(told));
        });
    }

    private static void consume() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "consume", null);
            for (int i = 0; i < 10; i++) {
                send(channel, queue, String.valueOf(i));
            }
            channel.basicQos(3);
            BlockingQueue<Delivery> deliveries = consume(channel, queue, false);
            expect(deliveries, "0", "1");
            Delivery third = next(deliveries);
            none(deliveries);
            channel.basicAck(third.getEnvelope().getDeliveryTag(), true);
            expect(deliveries, "3", "4", "5");
        });
    }

    private static void requeue() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "requeue", null);
            BlockingQueue<Delivery> deliveries = consume(channel, queue, false);
            send(channel, queue, "again");
            Delivery first = next(deliveries);
            same(false, first.getEnvelope().isRedeliver());
            channel.basicNack(first.getEnvelope().getDeliveryTag(), false, true);
            Delivery second = next(deliveries);
            same(true, second.getEnvelope().isRedeliver());
            same("again", text(second));
        });
    }

    @SuppressWarnings("unchecked")
    private static void deadLetter() throws Exception {
        with((connection, channel) -> {
            String work = name("work");
            String wait = name("wait");
            queue(channel, "work", Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", wait));
            queue(
                    channel,
                    "wait",
                    Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", work, "x-message-ttl", 200));
            BlockingQueue<Delivery> deliveries = consume(channel, work, false);
            send(channel, work, "try");
            channel.basicReject(next(deliveries).getEnvelope().getDeliveryTag(), false);
            Delivery second = next(deliveries);
            List<String> history = new ArrayList<>();
            for (Object death : (List<Object>) second.getProperties().getHeaders().get("x-death")) {
                Map<String, Object> one = (Map<String, Object>) death;
                history.add(one.get("reason") + " " + one.get("queue") + " " + one.get("count"));
            }
            same(List.of("expired " + wait + " 1", "rejected " + work + " 1"), history);
        });
    }

    private static void ttl() throws Exception {
        with((connection, channel) -> {
            String dead = queue(channel, "dead", null);
            Map<String, Object> toDead = Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead);
            String own = queue(channel, "own", toDead);
            var withTtl = new java.util.HashMap<>(toDead);
            withTtl.put("x-message-ttl", 200);
            String all = queue(channel, "all", withTtl);
            BlockingQueue<Delivery> deliveries = consume(channel, dead, true);
            var properties = new AMQP.BasicProperties.Builder().expiration("100").build();
            channel.basicPublish("", own, properties, "own".getBytes(UTF_8));
            expect(deliveries, "own");
            send(channel, all, "all");
            expect(deliveries, "all");
        });
    }

    private static void priority() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "priority", Map.of("x-max-priority", 5));
            for (int priority : new int[] {1, 5, 3}) {
                var properties = new AMQP.BasicProperties.Builder().priority(priority).build();
                channel.basicPublish("", queue, properties, String.valueOf(priority).getBytes(UTF_8));
            }
            expect(consume(channel, queue, true), "5", "3", "1");
        });
    }

    private static void rpc() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "rpc", null);
            RpcServer server = new RpcServer(connection.createChannel(), queue) {
                @Override
                public byte[] handleCall(Delivery request, AMQP.BasicProperties replyProperties) {
                    return text(request).toUpperCase().getBytes(UTF_8);
                }
            };
            Thread thread = new Thread(() -> {
                try {
                    server.mainloop(); // until its connection is closed
                } catch (IOException error) {
                    error.printStackTrace();
                }
            });
            thread.start();
            // The client's replies come through amq.rabbitmq.reply-to if no other queue is named.
            var parameters = new RpcClientParams().channel(channel).exchange("").routingKey(queue).timeout(10_000);
            RpcClient client = new RpcClient(parameters);
            same("QUESTION", client.stringCall("question"));
            same("AND ANOTHER", client.stringCall("and another"));
            client.close();
        });
    }

    private static void serverNamed() throws Exception {
        with((connection, channel) -> {
            String queue = channel.queueDeclare().getQueue();
            check(queue.startsWith("amq.gen-"), queue);
            with((other, unused) -> refused(other, 405, (c, refused) -> refused.queueDeclarePassive(queue)));
        });
    }

    private static void cancel() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "cancel", null);
            BlockingQueue<String> cancelled = new ArrayBlockingQueue<>(1);
            String tag = channel.basicConsume(queue, true, (t, delivery) -> {}, cancelled::add);
            channel.queueDelete(queue);
            same(tag, next(cancelled));
        });
    }

    private static void stream() throws Exception {
        with((connection, channel) -> {
            String queue = name("stream");
            channel.queueDeclare(queue, true, false, false, Map.of("x-queue-type", "stream"));
            try {
                channel.confirmSelect();
                for (int i = 0; i < 10; i++) {
                    send(channel, queue, String.valueOf(i));
                }
                channel.waitForConfirmsOrDie(Player.PATIENCE_S * 1000L);
                try (Channel reader = connection.createChannel()) {
                    reader.basicQos(10);
                    expect(consume(reader, queue, false, Map.of("x-stream-offset", "first")), "0", "1", "2");
                }
                try (Channel reader = connection.createChannel()) {
                    reader.basicQos(10);
                    BlockingQueue<Delivery> deliveries = consume(reader, queue, false, Map.of("x-stream-offset", 7L));
                    Delivery seventh = next(deliveries);
                    same("7", text(seventh));
                    same(7L, seventh.getProperties().getHeaders().get("x-stream-offset"));
                    expect(deliveries, "8", "9");
                }
            } finally {
                channel.queueDelete(queue);
            }
        });
    }

    private static void large() throws Exception {
        with((connection, channel) -> {
            String queue = queue(channel, "large", null);
            byte[] body = Player.largeBody();
            channel.basicPublish("", queue, null, body);
            check(Arrays.equals(body, next(consume(channel, queue, true)).getBody()), "not what was sent");
        });
    }

    private static void tls() throws Exception {
        try (Connection connection = Player.tlsFactory(true).newConnection();
                Channel channel = connection.createChannel()) {
            String queue = queue(channel, "tls", null);
            send(channel, queue, "secret");
            expect(consume(channel, queue, true), "secret");
        }
        try (Connection connection = Player.tlsFactory(false).newConnection()) {
            check(false, "trusted without the authority: " + connection);
        } catch (SSLHandshakeException expected) {
            System.out.println(expected);
        }
    }

    private static void wrongPassword() throws Exception {
        ConnectionFactory factory = factory();
        factory.setPassword("wrong");
        try (Connection connection = factory.newConnection()) {
            check(false, "let in: " + connection);
        } catch (AuthenticationFailureException expected) {
            check(expected.getMessage().startsWith("ACCESS_REFUSED"), expected);
        }
    }

    /** A connection with recovery listeners, and a consumer whose queue and binding have to be recovered. */
    private static BlockingQueue<String> recovering(Connection connection, Channel channel, BlockingQueue<Delivery> to)
            throws IOException {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        connection.addShutdownListener(signal -> told.add(
                signal.getReason() instanceof AMQP.Connection.Close close ? "" + close.getReplyCode() : "lost"));
        ((Recoverable) connection).addRecoveryListener(new RecoveryListener() {
            @Override
            public void handleRecoveryStarted(Recoverable recoverable) {}

            @Override
            public void handleRecovery(Recoverable recoverable) {
                told.add("recovered");
            }
        });
        String queue = channel.queueDeclare().getQueue();
        channel.queueBind(queue, "amq.topic", name("news"));
        channel.basicConsume(queue, true, (tag, delivery) -> to.add(delivery), tag -> {});
        return told;
    }

    private static void forcedClose() throws Exception {
        with((connection, channel) -> {
            BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
            BlockingQueue<String> told = recovering(connection, channel, deliveries);
            ask("CLOSE");
            same("320", next(told));
            same("recovered", next(told));
            channel.basicPublish("amq.topic", name("news"), null, "after".getBytes(UTF_8));
            expect(deliveries, "after");
        });
    }

    private static void reconnect() throws Exception {
        with((connection, channel) -> {
            BlockingQueue<Delivery> deliveries = new LinkedBlockingQueue<>();
            BlockingQueue<String> told = recovering(connection, channel, deliveries);
            String durable = name("durable");
            channel.queueDeclare(durable, true, false, false, null);
            channel.confirmSelect();
            channel.basicPublish("", durable, MessageProperties.PERSISTENT_BASIC, "kept".getBytes(UTF_8));
            channel.waitForConfirmsOrDie(Player.PATIENCE_S * 1000L);
            ask("RESTART");
            same("320", next(told));
            same("recovered", next(told));
            channel.basicPublish("amq.topic", name("news"), null, "after".getBytes(UTF_8));
            expect(deliveries, "after");
            expect(consume(channel, durable, true), "kept");
        });
    }
}
