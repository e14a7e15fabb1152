package matrix;

import com.rabbitmq.client.ConnectionFactory;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.JdkSslContext;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The lines that are spoken with the harness, and what the three programs here share. */
final class Player {
    static final int PATIENCE_S = 20;
    static final int LARGE = 16 << 20;

    private static final String TRANSPORT = System.getProperty("transport", "");

    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    interface Scenario {
        void play() throws Exception;
    }

    /** A scenario that this client does not support. */
    static final class Unsupported extends Exception {
        Unsupported(String reason) {
            super(reason);
        }
    }

    private Player() {}

    static void play(String[] names, Map<String, Scenario> scenarios) {
        for (String name : names) {
            System.out.println("RESULT " + name + " " + outcome(scenarios.get(name)));
        }
        // Threads of a client must not keep the process.
        System.exit(0);
    }

    private static String outcome(Scenario scenario) {
        try {
            if (scenario == null) {
                return "failed there is no such scenario here";
            }
            scenario.play();
            return "ok";
        } catch (Unsupported unsupported) {
            return "unsupported " + unsupported.getMessage();
        } catch (Throwable error) {
            error.printStackTrace();
            return "failed " + withCauses(error).replaceAll("\\s+", " ");
        }
    }

    private static String withCauses(Throwable error) {
        return error + (error.getCause() == null ? "" : ", caused by " + withCauses(error.getCause()));
    }

    /** Let the harness restart the broker ("RESTART") or close all connections ("CLOSE"). */
    static void ask(String what) throws Exception {
        System.out.println(what);
        check("DONE".equals(ANSWERS.readLine()), "the harness did not " + what);
    }

    /** Return a unique name of a queue or exchange. */
    static String name(String stem) {
        return System.getenv("PREFIX") + "." + stem;
    }

    static void check(boolean ok, Object what) {
        if (!ok) {
            throw new AssertionError(what);
        }
    }

    static void same(Object expected, Object got) {
        check(Objects.equals(expected, got), "got " + got + " instead of " + expected);
    }

    static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        T element = queue.poll(PATIENCE_S, TimeUnit.SECONDS);
        check(element != null, "nothing came");
        return element;
    }

    static <T> void none(BlockingQueue<T> queue) throws InterruptedException {
        T element = queue.poll(300, TimeUnit.MILLISECONDS);
        check(element == null, "unexpected: " + element);
    }

    static ConnectionFactory factory() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(System.getenv("AMQP_URL"));
        factory.setNetworkRecoveryInterval(500);
        return withTransport(factory);
    }

    /** Use the transport that the row asks for; without one it is that of plain sockets. */
    private static ConnectionFactory withTransport(ConnectionFactory factory) {
        switch (TRANSPORT) {
            case "nio" -> factory.useNio();
            case "netty" -> factory.netty();
            default -> {}
        }
        return factory;
    }

    /** A factory for TLS that trusts the broker's authority, or only those that Java trusts. */
    static ConnectionFactory tlsFactory(boolean trustsAuthority) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(System.getenv("AMQPS_URL"));
        SSLContext context = trustsAuthority ? trusting(Path.of(System.getenv("CA_FILE"))) : SSLContext.getDefault();
        if (TRANSPORT.equals("netty")) {
            // It verifies the name of the host by default.
            factory.netty().sslContext(new JdkSslContext(context, true, ClientAuth.NONE));
            return factory;
        }
        factory.useSslProtocol(context);
        factory.enableHostnameVerification();
        return withTransport(factory);
    }

    private static SSLContext trusting(Path authority) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var pem = Files.newInputStream(authority)) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    static byte[] largeBody() {
        byte[] body = new byte[LARGE];
        for (int i = 0; i < body.length; i++) {
            body[i] = (byte) (i * 31);
        }
        return body;
    }
}
