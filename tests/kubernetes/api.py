"""A client of the API server, for the node."""

from __future__ import annotations

import json
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

TIMEOUT_S = 30


class Missing(Exception):
    """The API server has no such object."""


class Api:
    """Requests with the account and the addresses of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text("utf-8"))
        cluster = config["clusters"][0]["cluster"]
        self.url = cluster["server"]
        self.token = config["users"][0]["user"]["token"]
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])

    def get(self, path: str) -> Any:
        return self._call("GET", path)

    def post(self, path: str, body: object) -> Any:
        return self._call("POST", path, body)

    def patch(self, path: str, body: object) -> None:
        """Merge these fields into an object. An object that is gone is left alone."""
        with suppress(Missing):
            self._call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        """Delete an object now. An object that is gone is left alone."""
        with suppress(Missing):
            self._call("DELETE", path, {"gracePeriodSeconds": 0})

    def _call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = Request(self.url + path, content, headers, method=method)
        try:
            with urlopen(request, timeout=TIMEOUT_S, context=self.tls) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 404:
                raise Missing(path) from error
            raise
