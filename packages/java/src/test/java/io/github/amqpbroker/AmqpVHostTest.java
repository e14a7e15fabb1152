package io.github.amqpbroker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(AmqpBrokerExtension.class)
class AmqpVHostTest {
    private static AmqpVHost ofClass;
    private static AmqpVHost last;

    private final AmqpVHost ofConstructor;
    private AmqpVHost prepared;

    AmqpVHostTest(AmqpVHost vhost) {
        ofConstructor = vhost;
    }

    @BeforeAll
    static void keep(AmqpVHost vhost) {
        ofClass = vhost;
    }

    @BeforeEach
    void prepare(AmqpVHost vhost) {
        prepared = vhost;
    }

    @AfterEach
    void compare(AmqpVHost vhost) {
        assertSame(prepared, vhost);
    }

    private static Connection connect(String url) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(url);
        factory.setAutomaticRecoveryEnabled(false);
        return factory.newConnection();
    }

    /** Returns a channel in confirm mode, which the end of the vhost closes. */
    private static Channel channel(AmqpVHost vhost) throws Exception {
        var channel = connect(vhost.url()).createChannel();
        channel.confirmSelect();
        return channel;
    }

    private static boolean isConfirmed(Channel channel, String body) throws Exception {
        channel.basicPublish("", "orders", null, body.getBytes());
        return channel.waitForConfirms();
    }

    @ParameterizedTest
    @ValueSource(strings = {"order 1", "order 2"})
    void eachTestSeesItsOwnQueueAlone(String body, AmqpVHost vhost, AmqpBroker broker) throws Exception {
        var channel = channel(vhost);
        assertEquals(0, channel.queueDeclare("orders", true, false, false, null).getMessageCount());
        assertTrue(isConfirmed(channel, body));
        try (var other = broker.vhost()) {
            assertEquals(0, channel(other).queueDeclare("orders", true, false, false, null).getMessageCount());
        }
        assertEquals(body, new String(channel.basicGet("orders", true).getBody()));
    }

    @Test
    void aTestAndItsPreparationHaveTheSameVHost(AmqpVHost vhost) {
        assertSame(vhost, prepared);
        assertSame(vhost, ofConstructor);
        assertNotSame(ofClass, vhost);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void theVHostOfATestThatHasEndedIsGone(int run, AmqpVHost vhost) throws Exception {
        if (last != null) {
            assertThrows(IOException.class, () -> connect(last.url()));
        }
        connect(vhost.url()).close();
        connect(ofClass.url()).close();
        last = vhost;
    }

    @Test
    void aDeletedVHostClosesItsConnections(AmqpBroker broker) throws Exception {
        Connection connection;
        var closed = new LinkedBlockingQueue<String>();
        try (var vhost = broker.vhost()) {
            connection = connect(vhost.url());
            connection.addShutdownListener(reason -> closed.add(reason.getMessage()));
        }
        assertTrue(closed.take().contains("320"));
    }

    @Test
    void aPublishIsNackedAndPublishedAgain(AmqpVHost vhost) throws Exception {
        var channel = channel(vhost);
        var rule = vhost.faults().add("confirm_nack", Map.of("routing_key", "orders", "times", 1));
        assertFalse(isConfirmed(channel, "order 1"));
        assertTrue(isConfirmed(channel, "order 1"));
        assertEquals(1, vhost.faults().hits(rule));
    }

    @Test
    void removedAndClearedRulesHaveNoEffect(AmqpVHost vhost, AmqpBroker broker) throws Exception {
        try (var other = broker.vhost()) {
            var kept = other.faults().add("confirm_nack");
            vhost.faults().remove(vhost.faults().add("confirm_nack"));
            vhost.faults().add("confirm_nack");
            vhost.faults().clear();
            assertTrue(isConfirmed(channel(vhost), "order 1"));
            assertEquals(0, broker.faults().hits(kept));
            broker.faults().clear();
            var error = assertThrows(IllegalArgumentException.class, () -> broker.faults().hits(kept));
            assertEquals("Not Found", error.getMessage());
        }
    }

    @Test
    void heldDeliveriesAreReleasedOneByOne(AmqpVHost vhost) throws Exception {
        var channel = channel(vhost);
        channel.queueDeclare("orders", true, false, false, null);
        var held = vhost.faults().add("hold_delivery", Map.of("queue", "orders"));
        isConfirmed(channel, "new");
        isConfirmed(channel, "paid");
        var arrived = new LinkedBlockingQueue<String>();
        channel.basicConsume("orders", true, (tag, order) -> arrived.add(new String(order.getBody())), tag -> {});
        for (var expected : List.of("new", "paid")) {
            assertEquals(1, vhost.faults().release(held, 1));
            assertEquals(expected, arrived.take());
        }
    }

    @Test
    void rulesFollowEachOther(AmqpVHost vhost) throws Exception {
        var then = List.of(Map.of("action", "confirm_nack", "routing_key", "\"orders\"", "times", 1, "after", 0));
        vhost.faults().add("confirm_nack", Map.of("routing_key", "orders", "then", then));
        var channel = channel(vhost);
        assertFalse(isConfirmed(channel, "order 1"));
        assertTrue(isConfirmed(channel, "order 1"));
        channel.basicPublish("", "\"orders\"", null, new byte[0]);
        assertFalse(channel.waitForConfirms());
    }

    @Test
    void halfAnHourPassesAtOnce(AmqpVHost vhost) throws Exception {
        var channel = channel(vhost);
        channel.queueDeclare("orders", true, false, false, Map.of("x-message-ttl", 1_800_000));
        assertTrue(isConfirmed(channel, "order 1"));
        vhost.broker().clock().advance(Duration.ofMinutes(29));
        assertEquals(1, channel.messageCount("orders"));
        vhost.broker().clock().advance(Duration.ofMinutes(1));
        assertEquals(0, channel.messageCount("orders"));
    }

    @Test
    void aClockThatATestHasFrozenRunsAgainAfterTheTest(AmqpBroker broker) {
        var clock = broker.clock();
        try (var vhost = broker.vhost()) {
            clock.freeze();
            broker.vhost().close();
            var frozen = clock.now();
            clock.advance(Duration.ofMillis(5));
            assertEquals(frozen.plusMillis(5), clock.now());
        }
        assertFalse(clock.isFrozen());
    }

    @Test
    void badInputIsRefusedWithTheReasonOfTheBroker(AmqpVHost vhost, AmqpBroker broker) {
        var event = assertThrows(
                IllegalArgumentException.class,
                () -> vhost.faults().add("confirm_nack", Map.of("event", "publish")));
        assertTrue(event.getMessage().startsWith("a fault has no field 'event', "), event.getMessage());
        assertTrue(event.getMessage().endsWith("did you mean 'on'?"), event.getMessage());
        var times = assertThrows(
                IllegalArgumentException.class,
                () -> vhost.faults().add("confirm_nack", Map.of("times", "é\"\\ \u0001$")));
        assertTrue(times.getMessage().endsWith("not 'é\"\\\\ \\x01$'"), times.getMessage());
        var back = assertThrows(
                IllegalArgumentException.class,
                () -> broker.clock().advance(Duration.ofMillis(-1)));
        assertEquals("the clock cannot go back: -1 ms", back.getMessage());
    }

    @Test
    void aVHostEndsWithItsBroker() {
        AmqpVHost vhost;
        try (var broker = AmqpBroker.start()) {
            vhost = broker.vhost();
            assertNotEquals(broker.vhost().name(), vhost.name());
        }
        vhost.close();
    }

    @Test
    void aBrokerWithoutItsHttpApiSaysSo() {
        try (var broker = AmqpBroker.start("--no-management")) {
            var error = assertThrows(IllegalStateException.class, broker::vhost);
            assertTrue(error.getMessage().startsWith("the HTTP API is not served"), error.getMessage());
        }
    }
}
