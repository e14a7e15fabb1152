package jobs;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.net.URI;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.formats.json.JsonSerializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.connectors.rabbitmq.RMQSource;
import org.apache.flink.streaming.connectors.rabbitmq.common.RMQConnectionConfig;

/** Jobs with Apache Flink: `serve` works them off, `submit FIRST COUNT SIZE` sends some. */
public final class Jobs {
    private static final String QUEUE = "jobs";
    private static final int PERSISTENT = 2;

    public record Job(int number, String payload) {}

    private Jobs() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("serve")) {
            serve();
        } else {
            int first = Integer.parseInt(arguments[1]), count = Integer.parseInt(arguments[2]);
            submit(first, count, Integer.parseInt(arguments[3]));
        }
    }

    private static RMQConnectionConfig broker() {
        URI url = URI.create(System.getenv("AMQP_URL"));
        String[] login = url.getUserInfo().split(":");
        String vhost = url.getPath().substring(1);
        return new RMQConnectionConfig.Builder()
                .setHost(url.getHost())
                .setPort(url.getPort())
                .setVirtualHost(vhost.isEmpty() ? "/" : vhost)
                .setUserName(login[0])
                .setPassword(login[1])
                // Flink restarts the job with a new connection; a recovered old one would stay open for nothing.
                .setAutomaticRecovery(false)
                .setPrefetchCount(100)
                .build();
    }

    private static void serve() throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofSeconds(1));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, configuration);
        // Jobs are acked when a checkpoint is complete.
        environment.enableCheckpointing(500);
        environment
                .addSource(new RMQSource<>(broker(), QUEUE, true, new JsonDeserializationSchema<>(Job.class)))
                .map(Jobs::work)
                .print();
        JobClient job = environment.executeAsync("jobs");
        System.out.println("ready");
        job.getJobExecutionResult().get();
    }

    private static String work(Job job) throws Exception {
        Thread.sleep(5);
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(job.payload().getBytes(UTF_8));
        return "done " + job.number() + " " + HexFormat.of().formatHex(digest, 0, 4);
    }

    /** Flink's own sink does not wait for confirms. */
    private static void submit(int first, int count, int size) throws Exception {
        JsonSerializationSchema<Job> schema = new JsonSerializationSchema<>();
        schema.open(null);
        try (Connection connection = broker().getConnectionFactory().newConnection();
                Channel channel = connection.createChannel()) {
            channel.queueDeclare(QUEUE, true, false, false, null);
            channel.confirmSelect();
            for (int number = first; number < first + count; number++) {
                BasicProperties properties = new BasicProperties.Builder()
                        .correlationId(Integer.toString(number))
                        .deliveryMode(PERSISTENT)
                        .build();
                channel.basicPublish("", QUEUE, properties, schema.serialize(new Job(number, "x".repeat(size))));
                channel.waitForConfirmsOrDie(10_000);
                System.out.println("accepted " + number);
                Thread.sleep(5);
            }
        }
    }
}
