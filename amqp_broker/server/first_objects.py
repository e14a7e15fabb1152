"""The first objects of a broker.

They come from definitions; without any, a new broker has its defaults.
"""

from __future__ import annotations

import logging
from typing import Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.broker import Broker
from amqp_broker.settings.settings import Settings, SettingsError

logger = logging.getLogger("amqp_broker.server")

UNUSED: Final = (
    "the data folder has users already, so the default user and vhost of the settings (RABBITMQ_DEFAULT_USER, _PASS, "
    "_VHOST) are ignored, as in RabbitMQ: {}; change that with `amqp-broker ctl`, or start with a new folder"
)


def declare(broker: Broker, is_blank: bool) -> None:
    """Declare them. Raise DefinitionsError, and SettingsError for defaults with which RabbitMQ does not start."""
    add_to_new_vhosts(broker)
    try:
        _declare(broker, is_blank)
    except InvalidParameter as error:
        raise SettingsError(f"the default vhost and user cannot be created: {error}") from None


def _declare(broker: Broker, is_blank: bool) -> None:
    if broker.settings.definitions:
        # The import is slow, and most brokers have no definitions.
        from amqp_broker.server import startup_definitions

        startup_definitions.load(broker, is_blank)
    elif is_blank:
        if broker.settings.default_users:
            _check_default_user(broker.settings)
        broker.add_defaults()
    else:
        _report_unused_defaults(broker)


def _report_unused_defaults(broker: Broker) -> None:
    """Log that a former start has created the first user and vhost, if the settings have others."""
    settings, usual = broker.settings, Settings()
    user, vhost = broker.users.get(settings.default_user), settings.default_vhost
    differs = []
    if user is None and settings.default_user != usual.default_user:
        differs.append(f"there is no user '{settings.default_user}'")
    if user is not None and settings.default_pass != usual.default_pass:
        has_it = user.accepts(settings.default_pass.encode())
        differs += [] if has_it else [f"the password of '{user.name}' is another one"]
    if vhost not in broker.vhosts and vhost != usual.default_vhost:
        differs.append(f"there is no vhost '{vhost}'")
    if differs:
        logger.warning("%s", UNUSED.format(", ".join(differs)))


def _check_default_user(settings: Settings) -> None:
    """Raise InvalidParameter if the first vhost brings the default user: RabbitMQ 4.3.6 says user_already_exists."""
    from amqp_broker.broker.default_users import users_of

    if settings.default_user in users_of(settings.default_users, settings.default_vhost):
        raise InvalidParameter(f"the user '{settings.default_user}' is among default_users, too")


def add_to_new_vhosts(broker: Broker) -> None:
    """Have the settings' limits, operator policies and users added to each new vhost, in RabbitMQ's order."""
    settings = broker.settings
    if settings.default_limits or settings.default_policies:
        from amqp_broker.broker.vhost_defaults import VHostDefaults

        broker.events.listen(VHostDefaults(broker).on_event)
    if settings.default_users:
        from amqp_broker.broker.default_users import DefaultUsers

        broker.events.listen(DefaultUsers(broker).on_event)
