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
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.aopalliance.aop.Advice;
import org.springframework.amqp.AmqpAuthenticationException;
import org.springframework.amqp.AmqpIOException;
import org.springframework.amqp.core.AcknowledgeMode;
import org.springframework.amqp.core.AnonymousQueue;
import org.springframework.amqp.core.Binding;
import org.springframework.amqp.core.BindingBuilder;
import org.springframework.amqp.core.Declarables;
import org.springframework.amqp.core.FanoutExchange;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageBuilder;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.core.MessageProperties;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.core.ReturnedMessage;
import org.springframework.amqp.core.TopicExchange;
import org.springframework.amqp.rabbit.config.RetryInterceptorBuilder;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.connection.Connection;
import org.springframework.amqp.rabbit.connection.ConnectionListener;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.DirectMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.ListenerContainerConsumerFailedEvent;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.adapter.MessageListenerAdapter;
import org.springframework.amqp.rabbit.listener.api.ChannelAwareMessageListener;
import org.springframework.amqp.rabbit.retry.RejectAndDontRequeueRecoverer;
import org.springframework.context.support.GenericApplicationContext;

/** Spring AMQP as its applications use it: admin, template, listener containers, without the rest of Spring Boot. */
public final class SpringClient {
    /** The Spring AMQP objects of an application; `name` stems as in all programs here. */
    private static final class App implements AutoCloseable {
        final CachingConnectionFactory connections;
        final RabbitAdmin admin;
        final RabbitTemplate template;
        final GenericApplicationContext context = new GenericApplicationContext();
        final List<SimpleMessageListenerContainer> containers = new ArrayList<>();

        App(com.rabbitmq.client.ConnectionFactory factory) {
            // Spring recovers connections itself.
            factory.setAutomaticRecoveryEnabled(false);
            connections = new CachingConnectionFactory(factory);
            connections.setPublisherConfirmType(ConfirmType.CORRELATED);
            connections.setPublisherReturns(true);
            admin = new RabbitAdmin(connections);
            template = new RabbitTemplate(connections);
            template.setMandatory(true);
        }

        App() throws Exception {
            this(factory());
        }

        /** Objects that the admin declares whenever a connection opens. */
        void declare(Declarables declarables) {
            context.registerBean("topology", Declarables.class, () -> declarables);
            context.refresh();
            admin.setApplicationContext(context);
            admin.afterPropertiesSet();
        }

        Queue queue(String stem, Map<String, Object> arguments) {
            Queue queue = new Queue(name(stem), false, false, true, arguments);
            admin.declareQueue(queue);
            return queue;
        }

        /** A container for one queue, to be started when the settings are complete. */
        SimpleMessageListenerContainer container(String queue, MessageListener listener) {
            SimpleMessageListenerContainer container = new SimpleMessageListenerContainer(connections);
            container.setQueueNames(queue);
            container.setMessageListener(listener);
            container.setAmqpAdmin(admin);
            container.setRecoveryInterval(300);
            container.setReceiveTimeout(200);
            containers.add(container);
            return container;
        }

        BlockingQueue<Message> consume(String queue) {
            BlockingQueue<Message> messages = new LinkedBlockingQueue<>();
            container(queue, messages::add).start();
            return messages;
        }

        void send(String queue, String body) {
            template.convertAndSend(queue, (Object) body);
        }

        @Override
        public void close() {
            containers.forEach(SimpleMessageListenerContainer::stop);
            connections.destroy();
        }
    }

    private SpringClient() {}

    public static void main(String[] names) {
        Player.play(
                names,
                Map.ofEntries(
                        Map.entry("connect", SpringClient::connect),
                        Map.entry("topology", SpringClient::topology),
                        Map.entry("confirms", SpringClient::confirms),
                        Map.entry("returns", SpringClient::returns),
                        Map.entry("consume", SpringClient::consume),
                        Map.entry("requeue", SpringClient::requeue),
                        Map.entry("dead_letter", SpringClient::deadLetter),
                        Map.entry("ttl", SpringClient::ttl),
                        Map.entry("priority", SpringClient::priority),
                        Map.entry("rpc", SpringClient::rpc),
                        Map.entry("server_named", SpringClient::serverNamed),
                        Map.entry("cancel", SpringClient::cancel),
                        Map.entry("stream", SpringClient::stream),
                        Map.entry("large", SpringClient::large),
                        Map.entry("tls", SpringClient::tls),
                        Map.entry("wrong_password", SpringClient::wrongPassword),
                        Map.entry("forced_close", SpringClient::forcedClose),
                        Map.entry("reconnect", SpringClient::reconnect)));
    }

    private static String text(Message message) {
        return new String(message.getBody(), UTF_8);
    }

    private static void expect(BlockingQueue<Message> messages, String... bodies) throws InterruptedException {
        for (String body : bodies) {
            same(body, text(next(messages)));
        }
    }

    private static Message message(String body, Consumer<MessageProperties> change) {
        Message message = MessageBuilder.withBody(body.getBytes(UTF_8)).build();
        change.accept(message.getMessageProperties());
        return message;
    }

    /** Expect a channel to be closed with the reply code. */
    private static void refused(int code, Runnable work) {
        try {
            work.run();
        } catch (AmqpIOException error) {
            ShutdownSignalException signal = (ShutdownSignalException) error.getCause().getCause();
            same(code, ((AMQP.Channel.Close) signal.getReason()).getReplyCode());
            return;
        }
        check(false, "not refused with " + code);
    }

    private static void connect() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("connect", null);
            app.template.send(queue.getName(), message("hello", properties -> {
                properties.setMessageId("m1");
                properties.setHeader("n", 1L);
            }));
            Message message = app.template.receive(queue.getName(), 10_000);
            same("hello", text(message));
            same("m1", message.getMessageProperties().getMessageId());
            same(1L, message.getMessageProperties().getHeader("n"));
        }
    }

    private static void topology() throws Exception {
        try (App app = new App()) {
            TopicExchange events = new TopicExchange(name("events"));
            FanoutExchange archive = new FanoutExchange(name("archive"));
            Queue queue = new Queue(name("topology"));
            Binding order = BindingBuilder.bind(archive).to(events).with("order.#");
            Binding all = BindingBuilder.bind(queue).to(archive);
            app.declare(new Declarables(events, archive, queue, order, all));
            app.template.convertAndSend(events.getName(), "order.created", "1");
            same(1L, app.admin.getQueueInfo(queue.getName()).getMessageCount());
            app.admin.removeBinding(order);
            app.admin.removeBinding(all);
            same(1, app.admin.purgeQueue(queue.getName()));
            same(null, app.admin.getQueueInfo(name("missing")));
            refused(406, () -> app.template.execute(
                    channel -> channel.queueDeclare(queue.getName(), false, false, false, null)));
            check(app.admin.deleteQueue(queue.getName()), "the queue is still there");
            check(app.admin.deleteExchange(events.getName()), "the exchange is still there");
            check(app.admin.deleteExchange(archive.getName()), "the exchange is still there");
        }
    }

    private static void confirms() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("confirms", null);
            List<CorrelationData> sent = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                CorrelationData one = new CorrelationData("" + i);
                app.template.convertAndSend("", queue.getName(), "x", one);
                sent.add(one);
            }
            for (CorrelationData one : sent) {
                check(one.getFuture().get(Player.PATIENCE_S, TimeUnit.SECONDS).ack(), "nacked: " + one);
            }
        }
    }

    private static void returns() throws Exception {
        try (App app = new App()) {
            BlockingQueue<ReturnedMessage> returned = new LinkedBlockingQueue<>();
            app.template.setReturnsCallback(returned::add);
            CorrelationData one = new CorrelationData("1");
            app.template.convertAndSend("", name("nobody"), "lost", one);
            check(one.getFuture().get(Player.PATIENCE_S, TimeUnit.SECONDS).ack(), "nacked");
            check(one.getReturned() != null, "confirmed, and not returned before");
            same(312, next(returned).getReplyCode());
            same("NO_ROUTE", one.getReturned().getReplyText());
            same("lost", text(one.getReturned().getMessage()));
        }
    }

    private static void consume() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("consume", null);
            app.template.invoke(operations -> { // on one channel, so in order
                for (int i = 0; i < 10; i++) {
                    operations.convertAndSend(queue.getName(), (Object) ("" + i));
                }
                return null;
            });
            BlockingQueue<Message> messages = new LinkedBlockingQueue<>();
            BlockingQueue<Channel> channels = new LinkedBlockingQueue<>();
            ChannelAwareMessageListener listener = (message, channel) -> {
                messages.add(message);
                channels.add(channel);
            };
            SimpleMessageListenerContainer container = app.container(queue.getName(), listener);
            container.setAcknowledgeMode(AcknowledgeMode.MANUAL);
            container.setPrefetchCount(3);
            container.start();
            expect(messages, "0", "1");
            Message third = next(messages);
            none(messages);
            next(channels).basicAck(third.getMessageProperties().getDeliveryTag(), true);
            expect(messages, "3", "4", "5");
        }
    }

    private static void requeue() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("requeue", null);
            BlockingQueue<Boolean> redelivered = new LinkedBlockingQueue<>();
            app.container(queue.getName(), message -> {
                redelivered.add(message.getMessageProperties().isRedelivered());
                if (!message.getMessageProperties().isRedelivered()) {
                    throw new IllegalStateException("once more, please"); // the container requeues by default
                }
            }).start();
            app.send(queue.getName(), "again");
            same(false, next(redelivered));
            same(true, next(redelivered));
        }
    }

    /** The listener fails three times, then the message waits in the dead-letter queue and comes back. */
    private static void deadLetter() throws Exception {
        try (App app = new App()) {
            Queue work = QueueBuilder.nonDurable(name("work"))
                    .autoDelete()
                    .deadLetterExchange("")
                    .deadLetterRoutingKey(name("wait"))
                    .build();
            Queue wait = QueueBuilder.nonDurable(name("wait"))
                    .autoDelete()
                    .ttl(200)
                    .deadLetterExchange("")
                    .deadLetterRoutingKey(name("work"))
                    .build();
            app.declare(new Declarables(work, wait));
            AtomicInteger attempts = new AtomicInteger();
            BlockingQueue<Message> handled = new LinkedBlockingQueue<>();
            SimpleMessageListenerContainer container = app.container(work.getName(), message -> {
                if (attempts.incrementAndGet() <= 3) {
                    throw new IllegalStateException("attempt " + attempts);
                }
                handled.add(message);
            });
            Advice retries = RetryInterceptorBuilder.stateless()
                    .maxRetries(2)
                    .backOffOptions(10, 2, 100)
                    .recoverer(new RejectAndDontRequeueRecoverer())
                    .build();
            container.setAdviceChain(retries);
            container.start();
            app.send(work.getName(), "try");
            Message message = next(handled);
            same(4, attempts.get());
            List<String> history = new ArrayList<>();
            for (Map<String, ?> death : message.getMessageProperties().getXDeathHeader()) {
                history.add(death.get("reason") + " " + death.get("queue") + " " + death.get("count"));
            }
            same(List.of("expired " + wait.getName() + " 1", "rejected " + work.getName() + " 1"), history);
        }
    }

    private static void ttl() throws Exception {
        try (App app = new App()) {
            Queue dead = app.queue("dead", null);
            Map<String, Object> toDead = Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead.getName());
            Queue own = app.queue("own", toDead);
            Queue all = QueueBuilder.nonDurable(name("all")).autoDelete().ttl(200).withArguments(toDead).build();
            app.admin.declareQueue(all);
            BlockingQueue<Message> messages = app.consume(dead.getName());
            app.template.send(own.getName(), message("own", properties -> properties.setExpiration("100")));
            expect(messages, "own");
            app.send(all.getName(), "all");
            expect(messages, "all");
        }
    }

    private static void priority() throws Exception {
        try (App app = new App()) {
            Queue queue = QueueBuilder.nonDurable(name("priority")).autoDelete().maxPriority(5).build();
            app.admin.declareQueue(queue);
            for (int priority : new int[] {1, 5, 3}) {
                app.template.send(
                        queue.getName(), message("" + priority, properties -> properties.setPriority(priority)));
            }
            expect(app.consume(queue.getName()), "5", "3", "1");
        }
    }

    /** The template takes its replies from amq.rabbitmq.reply-to by itself. */
    private static void rpc() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("rpc", null);
            MessageListenerAdapter service = new MessageListenerAdapter(new Object() {
                @SuppressWarnings("unused")
                public String handleMessage(String question) {
                    return question.toUpperCase();
                }
            });
            app.container(queue.getName(), service).start();
            app.template.setReplyTimeout(10_000);
            same("QUESTION", app.template.convertSendAndReceive(queue.getName(), (Object) "question"));
        }
    }

    private static void serverNamed() throws Exception {
        try (App app = new App();
                App other = new App()) {
            String named = app.admin.declareQueue(new Queue("", false, true, true));
            check(named.startsWith("amq.gen-"), named);
            refused(405, () -> other.template.execute(channel -> channel.queueDeclarePassive(named)));
            // One that Spring names; its container consumes it exclusively.
            Queue anonymous = new AnonymousQueue();
            anonymous.setLeaderLocator(null); // older RabbitMQ refuses it for classic queues
            app.admin.declareQueue(anonymous);
            app.send(anonymous.getName(), "mine");
            expect(app.consume(anonymous.getName()), "mine");
        }
    }

    /** The container hears that its consumer is gone, and consumes again when the queue is back. */
    private static void cancel() throws Exception {
        try (App app = new App()) {
            Queue queue = new Queue(name("cancel"));
            app.admin.declareQueue(queue);
            BlockingQueue<Object> failures = new LinkedBlockingQueue<>();
            BlockingQueue<Message> messages = new LinkedBlockingQueue<>();
            SimpleMessageListenerContainer container = app.container(queue.getName(), messages::add);
            container.setMissingQueuesFatal(false);
            container.setFailedDeclarationRetryInterval(200);
            container.setRetryDeclarationInterval(200);
            container.setApplicationEventPublisher(event -> {
                if (event instanceof ListenerContainerConsumerFailedEvent failed) {
                    failures.add(failed.getThrowable().toString());
                }
            });
            container.start();
            app.send(queue.getName(), "1");
            expect(messages, "1");
            app.admin.deleteQueue(queue.getName());
            check(next(failures).toString().contains("ConsumerCancelledException"), "told otherwise");
            app.admin.declareQueue(queue);
            app.send(queue.getName(), "2");
            expect(messages, "2");
            container.stop();
            app.admin.deleteQueue(queue.getName());
        }
    }

    private static void stream() throws Exception {
        try (App app = new App()) {
            Queue queue = QueueBuilder.durable(name("stream")).stream().build();
            app.admin.declareQueue(queue);
            for (int i = 0; i < 10; i++) {
                CorrelationData one = new CorrelationData("" + i);
                app.template.convertAndSend("", queue.getName(), "" + i, one);
                check(one.getFuture().get(Player.PATIENCE_S, TimeUnit.SECONDS).ack(), "nacked");
            }
            for (Object offset : List.of("first", 7L)) {
                BlockingQueue<Message> messages = new LinkedBlockingQueue<>();
                SimpleMessageListenerContainer container = app.container(queue.getName(), messages::add);
                container.setConsumerArguments(Map.of("x-stream-offset", offset));
                container.setPrefetchCount(10);
                container.start();
                if (offset.equals("first")) {
                    expect(messages, "0", "1", "2");
                } else {
                    expect(messages, "7", "8", "9");
                }
                container.stop();
            }
            app.admin.deleteQueue(queue.getName());
        }
    }

    private static void large() throws Exception {
        try (App app = new App()) {
            Queue queue = app.queue("large", null);
            byte[] body = Player.largeBody();
            app.template.send(queue.getName(), MessageBuilder.withBody(body).build());
            Message message = app.template.receive(queue.getName(), 10_000);
            check(Arrays.equals(body, message.getBody()), "not what was sent");
        }
    }

    private static void tls() throws Exception {
        try (App app = new App(Player.tlsFactory(true))) {
            Queue queue = app.queue("tls", null);
            app.send(queue.getName(), "secret");
            same("secret", text(app.template.receive(queue.getName(), 10_000)));
        }
        try (App app = new App(Player.tlsFactory(false))) {
            app.connections.createConnection();
            check(false, "trusted without the authority");
        } catch (AmqpIOException expected) {
            check(expected.getCause() instanceof javax.net.ssl.SSLHandshakeException, expected);
        }
    }

    private static void wrongPassword() throws Exception {
        try (App app = new App()) {
            app.connections.setPassword("wrong");
            app.connections.createConnection();
            check(false, "let in");
        } catch (AmqpAuthenticationException expected) {
            check(expected.getMessage().contains("ACCESS_REFUSED"), expected);
        }
    }

    /** Containers of both kinds, on a queue that the admin has to declare again where it is gone. */
    private static void survives(String what, String reason) throws Exception {
        try (App app = new App()) {
            BlockingQueue<String> closes = new LinkedBlockingQueue<>();
            app.connections.addConnectionListener(new ConnectionListener() {
                @Override
                public void onCreate(Connection connection) {}

                @Override
                public void onShutDown(ShutdownSignalException signal) {
                    closes.add(
                            signal.getReason() instanceof AMQP.Connection.Close close
                                    ? "" + close.getReplyCode()
                                    : "lost");
                }
            });
            Queue news = new Queue(name("news-" + what), false, true, true);
            Queue durable = new Queue(name("durable-" + what));
            TopicExchange topic = new TopicExchange("amq.topic");
            app.declare(new Declarables(news, durable, BindingBuilder.bind(news).to(topic).with(name("news"))));
            BlockingQueue<Message> heard = app.consume(news.getName());
            BlockingQueue<Message> direct = new LinkedBlockingQueue<>();
            CorrelationData kept = new CorrelationData("kept");
            app.template.convertAndSend("", durable.getName(), "kept", kept);
            check(kept.getFuture().get(Player.PATIENCE_S, TimeUnit.SECONDS).ack(), "nacked");
            app.template.convertAndSend("amq.topic", name("news"), "before");
            expect(heard, "before");
            ask(what);
            same(reason, next(closes));
            publishAgain(app, heard);
            DirectMessageListenerContainer container = new DirectMessageListenerContainer(app.connections);
            container.setQueueNames(durable.getName());
            container.setMessageListener(direct::add);
            container.start();
            expect(direct, "kept");
            container.stop();
        }
    }

    /** An exclusive queue is there again when its container is. */
    private static void publishAgain(App app, BlockingQueue<Message> heard) throws Exception {
        Message message = null;
        for (int i = 0; message == null && i < Player.PATIENCE_S * 5; i++) {
            try {
                app.template.convertAndSend("amq.topic", name("news"), "after");
            } catch (org.springframework.amqp.AmqpException error) {
                System.out.println(error);
            }
            message = heard.poll(200, TimeUnit.MILLISECONDS);
        }
        check(message != null, "the container does not consume again");
        same("after", text(message));
    }

    private static void forcedClose() throws Exception {
        survives("CLOSE", "320");
    }

    private static void reconnect() throws Exception {
        survives("RESTART", "320");
    }
}
