package io.github.amqpbroker;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** The clock of a broker, which is that of all its vhosts. */
public final class AmqpClock {
    private final HttpApi api;

    AmqpClock(HttpApi api) {
        this.api = api;
    }

    /** Returns the time of the broker. */
    public Instant now() {
        return Instant.ofEpochMilli(HttpApi.number(api.request("GET", "/_broker/clock"), "now_ms"));
    }

    /**
     * Advances time by whole milliseconds. Everything that falls due meanwhile happens in order.
     *
     * @throws IllegalArgumentException for a negative duration; the text is the broker's reason
     */
    public void advance(Duration duration) {
        api.request("POST", "/_broker/clock/advance", Map.of("ms", duration.toMillis()));
    }

    /** Stops the clock; {@link #advance} still moves it. */
    public void freeze() {
        api.request("POST", "/_broker/clock/freeze");
    }

    /** Lets the clock run again from its current time. */
    public void resume() {
        api.request("POST", "/_broker/clock/resume");
    }

    boolean isFrozen() {
        return api.request("GET", "/_broker/clock").contains("\"is_frozen\":true");
    }
}
