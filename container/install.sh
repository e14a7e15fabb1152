#!/usr/bin/env bash
# Turn a system with the broker in /opt/amqp-broker into the equivalent of RabbitMQ's image: the same user, folders, files
# and programs. The Dockerfile and tests/container run this script as root.
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

# Any user of the container (--user) may write there.
folders=(/etc/rabbitmq /etc/rabbitmq/conf.d "$rabbitmq/plugins" /var/lib/rabbitmq /var/log/rabbitmq)
chown -R rabbitmq:rabbitmq "${folders[@]}"
chmod 777 "${folders[@]}"
