# The broker as an image that takes the place of RabbitMQ's: same user, ports and variables.
FROM python:3.12-slim AS build
COPY . /source
RUN python -m venv /opt/amqp-broker \
 && /opt/amqp-broker/bin/pip install --no-cache-dir --disable-pip-version-check -c /source/constraints.txt /source

FROM python:3.12-slim
# Spring Boot's Docker Compose support knows a RabbitMQ by this label.
LABEL org.springframework.boot.service-connection="rabbitmq" \
      org.opencontainers.image.title="amqp-broker" \
      org.opencontainers.image.licenses="Apache-2.0"

RUN groupadd --system --gid 999 rabbitmq \
 && useradd --system --uid 999 --gid rabbitmq --home-dir /var/lib/rabbitmq --create-home rabbitmq
COPY --from=build /opt/amqp-broker /opt/amqp-broker
ENV PATH=/opt/amqp-broker/bin:$PATH PYTHONUNBUFFERED=1

USER rabbitmq
WORKDIR /var/lib/rabbitmq
# AMQP with TLS, AMQP, management, metrics; so far the broker listens on 5672 only.
EXPOSE 5671 5672 15672 15692
STOPSIGNAL SIGTERM
# A TCP connect by bash costs next to nothing, so it may ask often: who waits for "healthy" waits two seconds at most.
HEALTHCHECK --interval=2s --timeout=2s --start-period=10s --retries=3 \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${RABBITMQ_NODE_PORT:-${AMQP_BROKER_PORT:-5672}}"]
# All clients are remote ones here, so guest may come from anywhere, as in RabbitMQ's image.
# The port is not given: RABBITMQ_NODE_PORT may set it.
CMD ["amqp-broker", "serve", "--host", "::", "--remote-guest"]
