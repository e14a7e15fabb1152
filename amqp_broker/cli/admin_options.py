"""Options of rabbitmqadmin: from the command line, from a configuration file, from a URI; and its help."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from amqp_broker.cli.admin_objects import NOUNS, OBJECTS
from amqp_broker.cli.admin_printing import FORMATS

# Options before the command, by both of their names, and whether they take a value.
OPTIONS: Mapping[str, bool] = {
    **dict.fromkeys(("config", "node", "host", "hostname", "port", "path_prefix", "vhost", "username", "user"), True),
    **dict.fromkeys(("password", "base_uri", "format", "sort", "depth", "request_timeout", "timeout"), True),
    **dict.fromkeys(("ssl_key_file", "ssl_cert_file", "ssl_ca_cert_file", "tls_ca_cert_file", "table_style"), True),
    **dict.fromkeys(("quiet", "ssl", "use_tls", "ssl_insecure", "insecure", "sort_reverse", "version", "help"), False),
    **dict.fromkeys(("ssl_disable_hostname_verification", "non_interactive", "bash_completion"), False),
}
LETTERS = {
    "c": "config",
    "N": "node",
    "H": "host",
    "P": "port",
    "V": "vhost",
    "u": "username",
    "p": "password",
    "U": "base_uri",
    "q": "quiet",
    "s": "ssl",
    "k": "ssl_insecure",
    "t": "request_timeout",
    "f": "format",
    "S": "sort",
    "R": "sort_reverse",
    "d": "depth",
    "h": "help",
}
DEFAULTS = {
    "host": "localhost",
    "port": "15672",
    "username": "guest",
    "password": "guest",
    "format": "table",
    "depth": "1",
    "request_timeout": "120",
    "path_prefix": "",
    "declare_vhost": "/",
}
SAME = {
    "hostname": "host",
    "user": "username",
    "use_tls": "ssl",
    "insecure": "ssl_insecure",
    "timeout": "request_timeout",
}
VERBS = ("list", "show", "declare", "delete", "close", "purge", "publish", "get", "export", "import", "help")
HELP = """\
Usage: rabbitmqadmin [options] command

  list KIND [COLUMN...]            {listed}
  show overview [COLUMN...]
  declare KIND NAME=VALUE...       {declared}
  delete KIND NAME=VALUE...        {deleted}
  close connection name=...
  purge queue name=...
  publish routing_key=... [exchange=... payload=... properties=... payload_encoding=...]
  get queue=... [count=... ackmode=... encoding=... payload_file=...]
  export FILE
  import FILE
  health_check local_alarms | cluster_wide_alarms | port_listener | protocol_listener | virtual_hosts ...

Arguments can also be written --name VALUE, and commands the other way round: queues declare --name q.

  -H, --host HOST           connect to this host [localhost]
  -P, --port PORT           connect to this port [15672]
  -U, --base-uri URI        both of them, the user and the password
      --path-prefix PREFIX  what stands before /api
  -V, --vhost VHOST         virtual host [all for list, / for declare]
  -u, --username NAME       user [guest]
  -p, --password PASSWORD   password [guest]
  -c, --config FILE         file with sections of such options [~/.rabbitmqadmin.conf]
  -N, --node SECTION        its section [default]
  -f, --format FORMAT       {formats} [table]
  -S, --sort COLUMN         sort lists by this column
  -R, --sort-reverse        in the other direction
  -d, --depth N             how deep tables go into nested values [1]
  -q, --quiet               no messages
  -t, --request-timeout S   give up after so many seconds [120]
  -s, --ssl                 connect with TLS; --ssl-ca-cert-file, --ssl-cert-file, --ssl-key-file
  -k, --ssl-insecure        do not check the certificate
      --bash-completion     print a completion script for bash
      --version             print the version
"""


class Wrong(Exception):
    """The command line is not understood."""


def from_file(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a section of the configuration file. Raises Wrong."""
    home = os.environ.get("HOME")
    path = options.get("config") or (f"{home}/.rabbitmqadmin.conf" if home else "")
    section = options.get("node", "default")
    if not path or not os.path.isfile(path):  # noqa: PTH113
        if "config" in options:
            raise Wrong(f"Could not read config file '{path}'")
        return {}
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path)
        found = dict(parser.items(section))
    except configparser.NoSectionError:
        if section == "default":
            return {}
        raise Wrong(f"Could not read section '{section}' in config file '{path}'") from None
    except (OSError, UnicodeDecodeError):
        raise Wrong(f"Could not read config file '{path}'") from None
    except configparser.Error as error:
        raise Wrong(str(error)) from None
    # v2's files are TOML, of which this needs to know the quotes.
    values = {SAME.get(name, name): value.strip("\"'") for name, value in found.items()}
    return {name: value for name, value in values.items() if value.lower() != "false"}


def from_uri(uri: str) -> dict[str, str]:
    """Host, port, user and password of a URI. Raises Wrong."""
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError as error:
        raise Wrong(f"'{uri}' is no URI: {error}") from None
    found = {"host": parts.hostname, "port": port, "username": parts.username, "password": parts.password}
    options = {name: unquote(str(value)) for name, value in found.items() if value is not None}
    if parts.scheme == "https":
        options = {"port": "15671", "ssl": "true", **options}
    return options


def tls_of(options: Mapping[str, str]) -> Any:
    import ssl

    context = ssl.create_default_context(cafile=options.get("ssl_ca_cert_file") or options.get("tls_ca_cert_file"))
    if "ssl_insecure" in options or "ssl_disable_hostname_verification" in options:
        context.check_hostname = False
    if "ssl_insecure" in options:
        context.verify_mode = ssl.CERT_NONE
    if "ssl_cert_file" in options:
        context.load_cert_chain(options["ssl_cert_file"], options.get("ssl_key_file"))
    return context


def help_text() -> str:
    return HELP.format(
        listed=" ".join(sorted(noun for noun, kind in NOUNS.items() if noun != kind and OBJECTS[kind].listed)),
        declared=" ".join(kind for kind, thing in OBJECTS.items() if thing.path),
        deleted=" ".join(kind for kind, thing in OBJECTS.items() if thing.named_by),
        formats=", ".join(FORMATS),
    )


def completion() -> str:
    """A completion script for bash."""
    nouns, word = " ".join(sorted(NOUNS)), '"${COMP_WORDS[COMP_CWORD]}"'
    return (
        "_rabbitmqadmin() {\n"
        '    case "${COMP_WORDS[COMP_CWORD-1]}" in\n'
        f'        list|declare|delete|close|purge) COMPREPLY=($(compgen -W "{nouns}" -- {word}));;\n'
        "        show) COMPREPLY=(overview);;\n"
        f"        export|import) COMPREPLY=($(compgen -f -- {word}));;\n"
        f'        *) COMPREPLY=($(compgen -W "{" ".join(VERBS)}" -- {word}));;\n'
        "    esac\n"
        "}\n"
        "complete -F _rabbitmqadmin rabbitmqadmin"
    )
