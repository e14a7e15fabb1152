package io.github.amqpbroker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * A running broker on free ports, which keeps everything in memory. It ends with this process at the latest.
 *
 * <p>The program is {@code amqp-broker} in {@code PATH}, or the file that the variable {@code AMQP_BROKER_PROGRAM} names.
 */
public final class AmqpBroker implements AutoCloseable {
    // It prints where the broker is, and ends when the pipe to it is closed.
    private static final String WAITING = "printf '%s\\n%s\\n' \"$AMQP_URL\" \"$RABBITMQ_MANAGEMENT_URL\"; exec cat";

    private final Process process;
    private final String url;
    private final String managementUrl;
    private final HttpApi api;
    private final AmqpClock clock;
    private final AmqpFaults faults;

    private AmqpBroker(Process process, String url, String managementUrl) {
        this.process = process;
        this.url = url;
        this.managementUrl = managementUrl;
        this.api = new HttpApi(url, managementUrl);
        this.clock = new AmqpClock(api);
        this.faults = new AmqpFaults(api, null);
    }

    /**
     * Starts a broker with options of {@code amqp-broker serve}, such as {@code "--compat", "4.3"}.
     *
     * @throws IllegalStateException if the broker does not start; the text is its reason
     */
    public static AmqpBroker start(String... options) {
        return startProgram(System.getenv().getOrDefault("AMQP_BROKER_PROGRAM", "amqp-broker"), options);
    }

    static AmqpBroker startProgram(String program, String... options) {
        var words = new ArrayList<>(List.of(program, "run"));
        words.addAll(List.of(options));
        words.addAll(List.of("--", "sh", "-c", WAITING));
        Process process;
        try {
            process = new ProcessBuilder(words).start();
        } catch (IOException error) {
            throw new IllegalStateException(
                    program + " cannot be run: put the file amqp-broker into PATH, or name it in AMQP_BROKER_PROGRAM ("
                            + error.getMessage() + ")",
                    error);
        }
        try {
            var output = process.inputReader();
            var url = output.readLine();
            var managementUrl = output.readLine();
            if (managementUrl == null) {
                var reason = new String(process.getErrorStream().readAllBytes()).strip();
                var text = reason.isEmpty() ? "it printed no address" : reason;
                throw new IllegalStateException(program + " did not start: " + text);
            }
            drain(process);
            return new AmqpBroker(process, url, managementUrl);
        } catch (IOException error) {
            process.destroy();
            throw new UncheckedIOException(error);
        }
    }

    /** Passes on what the broker says, so that it does not wait for a reader. */
    private static void drain(Process process) {
        var reader = new Thread(() -> {
            try (var errors = process.getErrorStream()) {
                errors.transferTo(System.err);
            } catch (IOException end) {
                // The broker has ended.
            }
        });
        reader.setDaemon(true);
        reader.start();
    }

    /** Returns {@code amqp://guest:guest@127.0.0.1:PORT/%2F}. */
    public String url() {
        return url;
    }

    /** Returns the URL of RabbitMQ's HTTP API, and of the web page. */
    public String managementUrl() {
        return managementUrl;
    }

    /** Creates a vhost with a name of its own; its {@code close} deletes it. */
    public AmqpVHost vhost() {
        return new AmqpVHost(this, api);
    }

    /** Returns the clock, which is that of all vhosts. */
    public AmqpClock clock() {
        return clock;
    }

    /** Returns the fault rules of all vhosts, and of connections that have none yet. */
    public AmqpFaults faults() {
        return faults;
    }

    boolean isRunning() {
        return process.isAlive();
    }

    /** Stops the broker, and returns when it has ended. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            process.waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            process.destroy();
            Thread.currentThread().interrupt();
        }
    }
}
