package io.github.amqpbroker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.ConnectionFactory;
import java.net.ConnectException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(AmqpBrokerExtension.class)
class AmqpBrokerTest {
    private static AmqpBroker first;

    private static ConnectionFactory factory(AmqpBroker broker) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(broker.url());
        return factory;
    }

    @Test
    void anOrderIsQueued(AmqpBroker broker) throws Exception {
        try (var connection = factory(broker).newConnection(); var channel = connection.createChannel()) {
            channel.queueDeclare("orders", true, false, false, null);
            channel.basicPublish("", "orders", null, "order 1".getBytes());
            assertEquals("order 1", new String(channel.basicGet("orders", true).getBody()));
        }
    }

    @Test
    void allTestsHaveTheSameBroker(AmqpBroker broker) {
        assertSame(broker, same(broker));
    }

    @Test
    void allTestsHaveTheSameBrokerAgain(AmqpBroker broker) {
        assertSame(broker, same(broker));
    }

    private static synchronized AmqpBroker same(AmqpBroker broker) {
        if (first == null) {
            first = broker;
        }
        return first;
    }

    @Test
    void aBrokerOfItsOwnStops(AmqpBroker shared) throws Exception {
        AmqpBroker own;
        try (var broker = AmqpBroker.start("--compat", "4.3")) {
            own = broker;
            assertNotEquals(shared.url(), broker.url());
            try (var connection = factory(broker).newConnection()) {
                assertTrue(connection.getServerProperties().get("version").toString().startsWith("4.3"));
            }
        }
        assertThrows(ConnectException.class, () -> factory(own).newConnection());
    }

    @Test
    void aMissingProgramIsExplained() {
        var error = assertThrows(IllegalStateException.class, () -> AmqpBroker.startProgram("/nowhere/amqp-broker"));
        assertTrue(error.getMessage().contains("AMQP_BROKER_PROGRAM"));
    }

    @Test
    void aWrongOptionIsTheTextOfTheError() {
        var error = assertThrows(IllegalStateException.class, () -> AmqpBroker.start("--compat", "1.0"));
        assertTrue(error.getMessage().contains("1.0"), error.getMessage());
    }
}
