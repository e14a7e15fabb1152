package jobs;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.MessageDigest;
import java.util.HexFormat;
import org.apache.camel.ExchangePattern;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.springrabbit.DefaultListenerContainerFactory;
import org.apache.camel.component.springrabbit.SpringRabbitMQEndpoint;
import org.apache.camel.main.BaseMainSupport;
import org.apache.camel.main.Main;
import org.apache.camel.main.MainListenerSupport;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;

/** Jobs with Apache Camel: `serve` works them off, `submit FIRST COUNT SIZE` sends some. */
public final class Jobs {
    private static final String JOBS = "spring-rabbitmq:jobs?queues=jobs&routingKey=jobs&arg.queue.durable=true";

    private record Job(int number, String payload) {}

    private static final class Worker extends RouteBuilder {
        @Override
        public void configure() {
            from(JOBS).unmarshal().json(Job.class).process(exchange -> {
                Job job = exchange.getMessage().getBody(Job.class);
                Thread.sleep(5);
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(job.payload().getBytes(UTF_8));
                System.out.println("done " + job.number() + " " + HexFormat.of().formatHex(digest, 0, 4));
            });
        }
    }

    private static final class Sender extends RouteBuilder {
        @Override
        public void configure() {
            // For as long as a broker may need to start again.
            errorHandler(defaultErrorHandler().maximumRedeliveries(30).redeliveryDelay(1000));
            from("direct:submit")
                    .marshal().json()
                    .to(ExchangePattern.InOnly, JOBS + "&autoDeclareProducer=true&confirm=enabled");
        }
    }

    /** Camel has no option for the interval of reconnecting, which is 5 s. */
    private static final class Containers extends DefaultListenerContainerFactory {
        @Override
        public AbstractMessageListenerContainer createListenerContainer(SpringRabbitMQEndpoint endpoint) {
            AbstractMessageListenerContainer container = super.createListenerContainer(endpoint);
            container.setRecoveryInterval(1000);
            return container;
        }
    }

    private Jobs() {}

    public static void main(String[] arguments) throws Exception {
        CachingConnectionFactory connections = new CachingConnectionFactory();
        connections.setUri(System.getenv("AMQP_URL"));
        if (connections.getVirtualHost().isEmpty()) {
            // The Java client takes the end of `amqp://host/` for the name of the vhost.
            connections.setVirtualHost("/");
        }
        connections.setPublisherConfirmType(ConfirmType.SIMPLE);
        Main main = new Main();
        main.bind("connections", connections);
        main.bind("containers", new Containers());
        try {
            if (arguments[0].equals("serve")) {
                serve(main);
            } else {
                int first = Integer.parseInt(arguments[1]), count = Integer.parseInt(arguments[2]);
                submit(main, first, count, Integer.parseInt(arguments[3]));
            }
        } finally {
            connections.destroy();
        }
    }

    private static void serve(Main main) throws Exception {
        main.configure().addRoutesBuilder(new Worker());
        main.addMainListener(new MainListenerSupport() {
            @Override
            public void afterStart(BaseMainSupport started) {
                System.out.println("ready");
            }
        });
        main.run();
    }

    private static void submit(Main main, int first, int count, int size) throws Exception {
        main.configure().addRoutesBuilder(new Sender());
        main.start();
        try (ProducerTemplate template = main.getCamelContext().createProducerTemplate()) {
            for (int number = first; number < first + count; number++) {
                template.sendBody("direct:submit", new Job(number, "x".repeat(size)));
                System.out.println("accepted " + number);
                Thread.sleep(5);
            }
        } finally {
            main.stop();
        }
    }
}
