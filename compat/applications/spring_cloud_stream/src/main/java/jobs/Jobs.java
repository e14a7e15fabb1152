package jobs;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.connection.CorrelationData.Confirm;
import org.springframework.amqp.support.AmqpHeaders;
import org.springframework.boot.ApplicationArguments;
import org.springframework.boot.ApplicationRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Profile;
import org.springframework.core.retry.RetryPolicy;
import org.springframework.core.retry.RetryTemplate;
import org.springframework.messaging.support.MessageBuilder;

/** Jobs with Spring Cloud Stream: `serve` works them off, `submit FIRST COUNT SIZE` sends some. */
@SpringBootApplication
public class Jobs {
    record Job(int number, String payload) {}

    @Configuration
    @Profile("serve")
    static class Worker {
        @Bean
        Consumer<Job> work() {
            return job -> {
                try {
                    Thread.sleep(5);
                    byte[] digest = MessageDigest.getInstance("SHA-256").digest(job.payload().getBytes(UTF_8));
                    System.out.println("done " + job.number() + " " + HexFormat.of().formatHex(digest, 0, 4));
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            };
        }

        @Bean
        ApplicationRunner ready() {
            return arguments -> System.out.println("ready");
        }
    }

    @Configuration
    @Profile("submit")
    static class Sender implements ApplicationRunner {
        // For as long as a broker may need to start again.
        private final RetryTemplate retries = new RetryTemplate(
                RetryPolicy.builder().maxRetries(30).delay(Duration.ofSeconds(1)).build());
        private final StreamBridge bridge;

        Sender(StreamBridge bridge) {
            this.bridge = bridge;
        }

        @Override
        public void run(ApplicationArguments arguments) throws Exception {
            int[] numbers = arguments.getNonOptionArgs().stream().skip(1).mapToInt(Integer::parseInt).toArray();
            int first = numbers[0], count = numbers[1], size = numbers[2];
            for (int number = first; number < first + count; number++) {
                Job job = new Job(number, "x".repeat(size));
                retries.execute(() -> send(job));
                System.out.println("accepted " + number);
                Thread.sleep(5);
            }
        }

        private Confirm send(Job job) throws Exception {
            CorrelationData correlation = new CorrelationData();
            bridge.send("jobs-out-0", MessageBuilder.withPayload(job)
                    .setHeader(AmqpHeaders.PUBLISH_CONFIRM_CORRELATION, correlation)
                    .build());
            Confirm confirm = correlation.getFuture().get(10, TimeUnit.SECONDS);
            if (!confirm.ack()) {
                throw new IllegalStateException("job " + job.number() + " is not confirmed: " + confirm.reason());
            }
            return confirm;
        }
    }

    public static void main(String[] arguments) {
        String verb = arguments[0];
        ConfigurableApplicationContext context =
                new SpringApplicationBuilder(Jobs.class).profiles(verb).run(arguments);
        if (verb.equals("submit")) {
            System.exit(SpringApplication.exit(context));
        }
    }
}
