package io.github.amqpbroker;

import java.util.function.Supplier;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests an {@link AmqpVHost} of their own, and an {@link AmqpBroker}, as parameters. The whole run has one
 * broker, which starts with the first test. A test and its {@code @BeforeEach} methods have the same vhost.
 */
public final class AmqpBrokerExtension implements ParameterResolver {
    private record Resource(AutoCloseable value) implements CloseableResource, AutoCloseable {
        @Override
        public void close() throws Exception {
            value.close();
        }
    }

    @Override
    public ExtensionContextScope getTestInstantiationExtensionContextScope(ExtensionContext root) {
        return ExtensionContextScope.TEST_METHOD;
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        var type = parameter.getParameter().getType();
        return type == AmqpBroker.class || type == AmqpVHost.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == AmqpBroker.class ? broker(context) : vhost(context);
    }

    private static AmqpBroker broker(ExtensionContext context) {
        return resource(context.getRoot(), "broker", AmqpBroker.class, AmqpBroker::start);
    }

    private static AmqpVHost vhost(ExtensionContext context) {
        // A store also finds what the contexts above it have: the vhost of @BeforeAll is none for a test.
        return resource(context, context.getUniqueId(), AmqpVHost.class, () -> broker(context).vhost());
    }

    /** Returns a resource of a context, which ends with it. */
    private static <T extends AutoCloseable> T resource(
            ExtensionContext context, String key, Class<T> type, Supplier<T> create) {
        var store = context.getStore(Namespace.create(AmqpBrokerExtension.class));
        return type.cast(store.getOrComputeIfAbsent(key, any -> new Resource(create.get()), Resource.class).value());
    }
}
