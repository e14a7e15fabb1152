"""A step of a program over HTTP: a request, and the names that stand for the program's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from compat.management.http_asking import Ask

# Stand for the program's vhost and user; other objects of the broker have names that begin with one of these.
VHOST: Final = "{vhost}"
USER: Final = "{user}"


class Step(NamedTuple):
    """A request with additional headers."""

    ask: Ask
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def path(self) -> str:
        """The path without parameters."""
        return self.ask.path.partition("?")[0]

    @property
    def is_import(self) -> bool:
        return self.ask.method == "POST" and self.path.startswith("definitions")

    @property
    def title(self) -> str:
        return " ".join([self.ask.title, *([f"with {json.dumps(dict(self.headers))}"] if self.headers else [])])

    def filled(self, name: str) -> Step:
        """Return this step with the names of a program."""
        path, body = _filled(self.ask.path, name), _filled(self.ask.body, name)
        return self._replace(ask=self.ask._replace(path=path, body=body))


def _filled(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return value.replace(VHOST, name).replace(USER, f"{name}-user")
    if isinstance(value, list):
        return [_filled(item, name) for item in value]
    if isinstance(value, dict):
        return {_filled(key, name): _filled(item, name) for key, item in value.items()}
    return value
