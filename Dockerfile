# An image that replaces RabbitMQ's. docs/container.md lists what is the same.
FROM python:3.12-slim AS build
# The modules on a message's way are compiled. Only this stage has the compiler.
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev
# Dependencies have a layer of their own, which changes of the sources leave as it is.
COPY pyproject.toml constraints.txt /source/
RUN python -m venv /opt/amqp-broker \
 && python -c "import tomllib; print(*tomllib.load(open('/source/pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
    > /tmp/dependencies \
 && /opt/amqp-broker/bin/pip install --no-cache-dir --disable-pip-version-check \
    -c /source/constraints.txt -r /tmp/dependencies
COPY . /source
# gcc's level of optimization.
ARG AMQP_BROKER_OPTIMIZATION=3
RUN AMQP_BROKER_COMPILED=1 /opt/amqp-broker/bin/pip install --no-cache-dir --disable-pip-version-check \
    -c /source/constraints.txt /source \
 && /opt/amqp-broker/bin/pip uninstall --yes --quiet pip \
 # The libraries of many packages have debug symbols.
 && find /opt/amqp-broker -name '*.so*' -type f -exec strip --strip-unneeded {} +

FROM python:3.12-slim
# Users' health checks and scripts call these. The base image has bash, setpriv, tzdata and certificates.
RUN apt-get update \
 && apt-get install -y --no-install-recommends curl netcat-openbsd wget \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/amqp-broker /opt/amqp-broker
COPY container /opt/amqp-broker/container
# The base image has the standard library as sources only, and the user rabbitmq may not write beside them: without this
# run, each start would compile them.
RUN /opt/amqp-broker/container/install.sh \
 && /opt/amqp-broker/bin/amqp-broker run -- /opt/rabbitmq/sbin/rabbitmqctl --quiet status > /dev/null \
 && rm -rf /tmp/amqp-broker-0

# Spring Boot's Docker Compose support recognizes RabbitMQ by the first label.
LABEL org.springframework.boot.service-connection="rabbitmq" \
      org.opencontainers.image.title="amqp-broker" \
      org.opencontainers.image.description="An AMQP 0-9-1 broker that RabbitMQ clients cannot tell from RabbitMQ" \
      org.opencontainers.image.licenses="Apache-2.0"

# RabbitMQ's variables name the files of /etc/rabbitmq, so that users can name others. Data are in
# XDG_DATA_HOME/amqp-broker, because the container's host name, RabbitMQ's folder name, changes.
ENV PATH=/opt/rabbitmq/sbin:/opt/amqp-broker/bin:$PATH \
    LANG=C.UTF-8 LANGUAGE=C.UTF-8 LC_ALL=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/rabbitmq \
    XDG_DATA_HOME=/var/lib/rabbitmq \
    AMQP_BROKER_RUNTIME_DIR=/tmp/amqp-broker \
    RABBITMQ_CONFIG_FILE=/etc/rabbitmq/rabbitmq \
    RABBITMQ_CONFIG_FILES=/etc/rabbitmq/conf.d \
    RABBITMQ_ADVANCED_CONFIG_FILE=/etc/rabbitmq/advanced \
    RABBITMQ_ENABLED_PLUGINS_FILE=/etc/rabbitmq/enabled_plugins

VOLUME /var/lib/rabbitmq
# RabbitMQ's list. Nothing listens on 4369, 15691 and 25672, and on the ports of TLS only with a certificate.
EXPOSE 4369 5671 5672 15671 15672 15691 15692 25672
STOPSIGNAL SIGTERM
# A check takes two milliseconds, so it may be frequent: "healthy" follows "ready" at once. Engines that do not know
# --start-interval refuse to build with it.
HEALTHCHECK --interval=1s --timeout=5s --start-period=60s --retries=10 CMD ["docker-healthcheck.sh"]
# The entrypoint starts as root, gives the volume to rabbitmq and becomes rabbitmq. Any --user works, too.
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["rabbitmq-server"]
