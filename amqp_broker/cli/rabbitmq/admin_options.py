"""Options of rabbitmqadmin: from the command line, a configuration file, or a URI."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, NamedTuple

from amqp_broker.cli.rabbitmq.admin_objects import NOUNS, OBJECTS
from amqp_broker.cli.rabbitmq.admin_tables import FORMATS
from amqp_broker.cli.rabbitmq.options import Kind, Option, flags_of, read_words
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.cli.shared.http_api import without_password

if TYPE_CHECKING:
    import ssl

# Options of the connection and of the output; v1's names, and v2's beside them.
OPTIONS = (
    Option("host", "HOST", "connect to this host", "H", ("hostname",), "localhost"),
    Option("port", "PORT", "connect to this port", "P", default="15672"),
    Option("base-uri", "URI", "host, port, path prefix, user and password in one", "U"),
    Option("path-prefix", "PREFIX", "path before /api"),
    Option("vhost", "VHOST", "virtual host; without it, list shows all and declare uses /", "V"),
    Option("username", "NAME", "user", "u", ("user",), "guest"),
    Option("password", "PASSWORD", "password", "p", default="guest"),
    Option("config", "FILE", "file with sections of these options", "c", default="~/.rabbitmqadmin.conf"),
    Option("node", "SECTION", "section of that file", "N", default="default"),
    Option("format", "FORMAT", ", ".join(FORMATS), "f", default="table"),
    Option("sort", "COLUMN", "sort lists by this column", "S"),
    Option("sort-reverse", about="sort in reverse order", letters="R"),
    Option("depth", "N", "levels of nested values that tables show", "d", default="1"),
    Option("quiet", about="no messages", letters="q"),
    Option("request-timeout", "S", "give up after S seconds", "t", ("timeout",), "120"),
    Option("ssl", about="connect with TLS", letters="s", also=("use-tls",)),
    Option("ssl-ca-cert-file", "FILE", "certificates of the authorities to trust", also=("tls-ca-cert-file",)),
    Option("ssl-cert-file", "FILE", "certificate of the client"),
    Option("ssl-key-file", "FILE", "key of that certificate"),
    Option("ssl-insecure", about="do not check the certificate of the server", letters="k", also=("insecure",)),
    Option("ssl-disable-hostname-verification", about="do not check the host name in that certificate"),
    Option("bash-completion", about="print a completion script for bash"),
    Option("help", about="print this help", letters="h"),
    Option("version", about="print the version"),
    # Options of v2 without a meaning here.
    Option("table-style", "STYLE"),
    Option("non-interactive"),
)
BY_FLAG = flags_of(OPTIONS)


class Line(NamedTuple):
    """A command line: options of the connection, words, and arguments with a name."""

    options: dict[str, str]
    words: list[str]
    given: dict[str, str]


def understand(words: list[str], verbs: Container[str]) -> Line:
    """Return the parts of a command line. Raises Misuse."""
    is_v1 = any("=" in word and not word.startswith("-") for word in words)
    line = Line({}, [], {})

    def find(flag: str) -> Option | None:
        # In v2, options after a command describe its object; some have the name of an option of the connection.
        option, name = BY_FLAG.get(flag), flag.lstrip("-").replace("-", "_")
        if option is None and (is_v1 or not line.words):
            option = abbreviated(flag)
        if option is not None and (is_v1 or len(flag) == 2 or name not in own_names(line.words)):
            return option
        return Option(name, "VALUE", is_value_optional=True) if flag.startswith("--") and line.words else None

    for word in read_words(words, find):
        name, equals, value = word.text.partition("=")
        if word.kind is Kind.UNKNOWN:
            raise Misuse(f"no such option: {word.text}")
        if word.kind is Kind.INCOMPLETE:
            raise Misuse(f"{word.text} option requires 1 argument")
        if word.option is not None:
            (line.options if word.option in OPTIONS else line.given)[word.option.key] = word.value
        elif equals and line.words and line.words[0] not in ("list", "show", "export", "import"):
            line.given[name] = value
        else:
            line.words.append(word.text)
    return line._replace(words=in_order_of_v1(line.words, verbs))


def abbreviated(flag: str) -> Option | None:
    """Return the one option whose name begins so: v1 takes `--user` and `--pass`."""
    found = {BY_FLAG[name] for name in BY_FLAG if len(flag) > 2 and name.startswith(flag)}
    return found.pop() if len(found) == 1 else None


def own_names(words: list[str]) -> set[str]:
    """Return the fields of the object that a command names."""
    kind = next((NOUNS[word] for word in words if word in NOUNS), None)
    if kind is None or words[0] == "list":
        return set()
    needed = {name for names in OBJECTS[kind].needed for name in names.split("|")}
    return (needed | set(OBJECTS[kind].optional)) - {"vhost"}


def in_order_of_v1(words: list[str], verbs: Container[str]) -> list[str]:
    """Return the words in the order of v1: v2 has `queues declare` and `publish message`."""
    if len(words) > 1 and words[0] in NOUNS and words[1] in verbs:
        words = [words[1], words[0], *words[2:]]
    if words[:2] in (["publish", "message"], ["get", "messages"]):
        words = [words[0], *words[2:]]
    if words[0:1] == ["definitions"] and len(words) > 1:
        words = [words[1], *words[2:]]
    return words


def from_file(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options in a section of the configuration file. Raises Misuse."""
    home = os.environ.get("HOME")
    path = options.get("config") or (f"{home}/.rabbitmqadmin.conf" if home else "")
    section = options.get("node", "default")
    if not path or not os.path.isfile(path):  # noqa: PTH113
        if "config" in options:
            raise Misuse(f"Could not read config file '{path}'")
        return {}
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path)
        found = dict(parser.items(section))
    except configparser.NoSectionError:
        if section == "default":
            return {}
        raise Misuse(f"Could not read section '{section}' in config file '{path}'") from None
    except (OSError, UnicodeDecodeError):
        raise Misuse(f"Could not read config file '{path}'") from None
    except configparser.Error as error:
        raise Misuse(str(error)) from None
    # The files of v2 are TOML, which only differs by its quotation marks here.
    keys = {name: BY_FLAG[f"--{name}"].key if f"--{name}" in BY_FLAG else name for name in found}
    values = {keys[name]: value.strip("\"'") for name, value in found.items()}
    return {name: value for name, value in values.items() if value.lower() != "false"}


def from_uri(uri: str) -> dict[str, str]:
    """Return host, port, path, user and password of a URI as options. Raises Misuse."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise Misuse(f"'{without_password(uri)}' is not a URI: {error}") from None
    found = {"host": parts.hostname, "port": port, "username": parts.username, "password": parts.password}
    options = {name: unquote(str(value)) for name, value in found.items() if value is not None}
    if prefix := parts.path.rstrip("/"):
        options["path_prefix"] = prefix
    if parts.scheme == "https":
        options = {"port": "15671", "ssl": "true", **options}
    return options


def tls_of(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of TLS connections. Raises Misuse for a file that cannot be read."""
    import ssl

    def cannot_read(name: str, error: OSError) -> Misuse:
        return Misuse(f"Could not read '{options[name]}' (--{name.replace('_', '-')}): {error.strerror or error}")

    for name in ("ssl_ca_cert_file", "ssl_cert_file", "ssl_key_file"):
        try:
            if name in options:
                open(options[name], "rb").close()  # noqa: PTH123
        except OSError as error:
            raise cannot_read(name, error) from None
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_cert_file"))
    except OSError as error:
        raise cannot_read("ssl_ca_cert_file", error) from None
    if "ssl_insecure" in options or "ssl_disable_hostname_verification" in options:
        context.check_hostname = False
    if "ssl_insecure" in options:
        context.verify_mode = ssl.CERT_NONE
    if "ssl_cert_file" in options:
        try:
            context.load_cert_chain(options["ssl_cert_file"], options.get("ssl_key_file"))
        except OSError as error:
            raise cannot_read("ssl_cert_file", error) from None
    return context
