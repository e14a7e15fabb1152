"""The text of a rabbitmq.conf.

It gives settings with valid values, and a sentence with its place for each other line.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.broker import Broker
from amqp_broker.settings.settings import SETTINGS, Settings, SettingsError
from amqp_broker.settings.sources.conf_keys import settings_of
from amqp_broker.settings.sources.rabbitmq_conf import ESCAPED_POINT, Entry, parse
from tests.fuzzing import texts
from tests.fuzzing.target import Failure, Target, expect

NAME = "rabbitmq.conf"
KEYS = tuple(key for declared in SETTINGS for key in declared.keys)
EXAMPLE = """# comment
listeners.tcp.default = 5672
listeners.tcp.2 = 127.0.0.1:5673
listeners.tcp.3 = ::1:5674
listeners.ssl.1 = 5671
loopback_users.guest = false
default_user = 'a # b'
default_pass = secret # comment
vm_memory_high_watermark.relative = 0.6
vm_memory_high_watermark.absolute = 2GB
disk_free_limit.absolute = 50MB
heartbeat = 60
frame_max = 131072
log.console = true
log.console.level = debug
management.tcp.port = 15672
auth_mechanisms.1 = PLAIN
default_permissions.configure = .*
cluster_name = n
deprecated_features.permit.transient_nonexcl_queues = true
management.listener.port = 15672
management.listener.ssl = true
unknown.key = x
log.file = false
consumer_timeout = infinity
default_queue_type = rabbit_quorum_queue
wrong line
"""


def check(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        # Refused when the file is read.
        return
    entries, wrong = parse(text, NAME)
    expect(all(place.startswith(f"{NAME}:") for place in wrong), f"places without a file: {wrong}")
    given, notices = settings_of(entries)
    expect(all(notice.text for notice in notices), "a notice without a sentence")
    settings = Settings(**{name: value for name, (value, _) in given.items()})
    try:
        settings.check()
    except SettingsError as error:
        raise Failure(f"a setting is read that is not valid: {error}") from None
    # These are read later than the file.
    expect(settings.listeners or not settings.tcp, "there is no listener")
    try:
        Broker(settings.resolved(), bytes).add_defaults()
    except InvalidParameter as error:
        # Ends the start with this sentence: a pattern that would be huge with its repeats written out.
        expect("too large" in str(error), str(error))
    check_again(entries)


def check_again(entries: list[Entry]) -> None:
    """Check that entries that are written are read as they were."""
    written = []
    for key, value, _ in entries:
        name = key.replace(ESCAPED_POINT, "\\.")
        written.append(f"{name} = '{value}'" if "'" not in value else f"{name} = {value}")
    again, wrong = parse("\n".join(written), NAME)
    expect(not wrong, f"entries are not read again: {wrong} of {written}")
    expect([one[:2] for one in again] == [one[:2] for one in entries], f"{entries} become {again}")


def seeds() -> Iterator[bytes]:
    yield EXAMPLE.encode()
    for line in EXAMPLE.splitlines():
        yield line.encode()
    for key in KEYS:
        yield f"{key} = 1".encode()
        yield f"{key} = true".encode()


MARKS = (" = ", "'", "\n", "#", "true", "false", "none", ".", "\\.", ":")
WORDS = (*KEYS, *(key.rpartition(".")[0] for key in KEYS if "." in key), *MARKS)


def mutate(chance: Random, data: bytes) -> bytes:
    return texts.mutate(chance, data, WORDS)


TARGET = Target(check, seeds, mutate, words=WORDS, octets_max=800)
