package io.github.amqpbroker;

import java.util.UUID;

/** A vhost for one test, with a name of its own. */
public final class AmqpVHost implements AutoCloseable {
    private final AmqpBroker broker;
    private final HttpApi api;
    private final String name;
    private final boolean wasFrozen;
    private final AmqpFaults faults;

    AmqpVHost(AmqpBroker broker, HttpApi api) {
        this.broker = broker;
        this.api = api;
        this.name = "test-" + UUID.randomUUID();
        this.wasFrozen = broker.clock().isFrozen();
        this.faults = new AmqpFaults(api, name);
        api.request("PUT", path());
    }

    private String path() {
        return "/api/vhosts/" + name;
    }

    public AmqpBroker broker() {
        return broker;
    }

    public String name() {
        return name;
    }

    /** Returns {@code amqp://guest:guest@127.0.0.1:PORT/NAME}. */
    public String url() {
        return broker.url().substring(0, broker.url().lastIndexOf('/') + 1) + name;
    }

    /** Returns the fault rules of this vhost. */
    public AmqpFaults faults() {
        return faults;
    }

    /**
     * Closes the connections of the vhost, and deletes it with its fault rules. The clock runs again if it ran when the
     * vhost was created. After the end of the broker there is nothing to do.
     */
    @Override
    public void close() {
        if (!broker.isRunning()) {
            return;
        }
        api.request("DELETE", path());
        // The clock is the next test's, too.
        if (!wasFrozen) {
            broker.clock().resume();
        }
    }
}
