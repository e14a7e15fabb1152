package io.github.amqpbroker;

import java.util.HashMap;
import java.util.Map;

/**
 * Fault rules: those of a vhost, or those of all vhosts and of connections that have none yet.
 *
 * <p>A refused rule, and one that does not exist, throw IllegalArgumentException with the broker's reason.
 */
public final class AmqpFaults {
    /** A fault rule that was added. */
    public record Rule(long id) {
        private String path() {
            return "/_broker/faults/" + id;
        }
    }

    private final HttpApi api;
    private final String vhost;

    AmqpFaults(HttpApi api, String vhost) {
        this.api = api;
        this.vhost = vhost;
    }

    /** Adds a rule without fields, such as {@code "confirm_nack"}. */
    public Rule add(String action) {
        return add(action, Map.of());
    }

    /**
     * Adds a rule, such as {@code "confirm_nack", Map.of("routing_key", "orders.*", "times", 3)}. The broker's page
     * about faults explains the fields.
     */
    public Rule add(String action, Map<String, ?> fields) {
        var given = new HashMap<String, Object>();
        if (vhost != null) {
            given.put("vhost", vhost);
        }
        given.putAll(fields);
        given.put("action", action);
        return new Rule(HttpApi.number(api.request("POST", "/_broker/faults", given), "id"));
    }

    /** Returns how often a rule has hit. */
    public long hits(Rule rule) {
        return HttpApi.number(api.request("GET", rule.path()), "hits");
    }

    /** Makes the oldest deliveries that a rule {@code hold_delivery} holds, and returns how many it held. */
    public long release(Rule rule, int count) {
        return HttpApi.number(api.request("POST", rule.path() + "/release", Map.of("count", count)), "released");
    }

    /** Removes a rule, and ends its effects on connections. */
    public void remove(Rule rule) {
        api.request("DELETE", rule.path());
    }

    /** Removes all rules. */
    public void clear() {
        api.request("DELETE", "/_broker/faults" + (vhost == null ? "" : "?vhost=" + vhost));
    }
}
