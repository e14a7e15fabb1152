#!/usr/bin/env bash
# Make of a system that has the broker in /opt/amqp-broker what RabbitMQ's image is: the same user, folders, files and
# programs. The Dockerfile runs it as root, and so does tests/container.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
broker=/opt/amqp-broker
rabbitmq=/opt/rabbitmq

groupadd --system --gid 999 rabbitmq
useradd --system --uid 999 --gid rabbitmq --home-dir /var/lib/rabbitmq --no-create-home --shell /bin/bash rabbitmq

mkdir -p "$rabbitmq/sbin" "$rabbitmq/plugins" /etc/rabbitmq/conf.d /var/lib/rabbitmq /var/log/rabbitmq /docker-entrypoint-init.d
ln -s "$rabbitmq/plugins" /plugins
install -m 644 "$here/conf.d/10-defaults.conf" /etc/rabbitmq/conf.d/
install -m 666 "$here/enabled_plugins" /etc/rabbitmq/
install -m 755 "$here/docker-entrypoint.sh" "$here/docker-healthcheck.sh" /usr/local/bin/
"$broker/bin/amqp-broker" install-shims "$rabbitmq/sbin"

# Whoever the container runs as (--user) may write there.
folders=(/etc/rabbitmq /etc/rabbitmq/conf.d "$rabbitmq/plugins" /var/lib/rabbitmq /var/log/rabbitmq)
chown -R rabbitmq:rabbitmq "${folders[@]}"
chmod 777 "${folders[@]}"
