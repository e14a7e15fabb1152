package io.github.amqpbroker;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Gives tests an {@link AmqpBroker} as a parameter: one for the whole run, which starts with the first test. */
public final class AmqpBrokerExtension implements ParameterResolver {
    private record Running(AmqpBroker broker) implements CloseableResource, AutoCloseable {
        @Override
        public void close() {
            broker.close();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == AmqpBroker.class;
    }

    @Override
    public AmqpBroker resolveParameter(ParameterContext parameter, ExtensionContext context) {
        var store = context.getRoot().getStore(Namespace.create(AmqpBrokerExtension.class));
        return store.getOrComputeIfAbsent("broker", key -> new Running(AmqpBroker.start()), Running.class).broker();
    }
}
