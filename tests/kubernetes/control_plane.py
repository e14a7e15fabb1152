"""A cluster's own programs on one host: etcd, and Kubernetes' API server, scheduler and controllers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from compat.waiting import wait_until
from tests.hosts import Host
from tests.kubernetes.hosts import SERVICES

ETCD = "http://127.0.0.1:2379"
PORT = 443
ISSUER = "https://kubernetes.default.svc"
TOKEN = "administrator"


class ControlPlane:
    """A cluster without nodes. `kubeconfig` has the account of an administrator."""

    def __init__(self, programs: Path, host: Host, folder: Path) -> None:
        self.programs = programs
        self.host = host
        self.folder = folder
        self.url = f"https://{host.address}:{PORT}"
        self.kubeconfig = folder / "kubeconfig"
        # The API server makes its certificate.
        self.certificate = folder / "certificates" / "apiserver.crt"

    @contextmanager
    def running(self) -> Iterator[Self]:
        with ExitStack() as stack:
            etcd = ("--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync")
            stack.enter_context(self._program("etcd", *etcd))
            stack.enter_context(self._program("kube-apiserver", *self._api_server_options()))
            wait_until(self._is_ready, 120)
            common = ("--kubeconfig", str(self.kubeconfig), "--leader-elect=false", "--secure-port=0")
            stack.enter_context(self._program("kube-scheduler", *common))
            accounts = ("--service-account-private-key-file", str(self.folder / "accounts.key"))
            certificate = ("--root-ca-file", str(self.certificate))
            stack.enter_context(self._program("kube-controller-manager", *common, *accounts, *certificate))
            wait_until(lambda: "default" in self.kubectl("get", "serviceaccounts", "-o", "name"), 120)
            yield self

    def kubectl(self, *words: str) -> str:
        """Return the output of Debian's kubectl."""
        command = self.host.command(str(self.programs / "kubectl"), "--kubeconfig", str(self.kubeconfig), *words)
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _program(self, name: str, *options: str) -> AbstractContextManager[object]:
        return self.host.running([str(self.programs / name), *options], self.folder / f"{name}.log", {})

    def _api_server_options(self) -> tuple[str, ...]:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        accounts = self.folder / "accounts.key"
        accounts.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        tokens = self.folder / "tokens"
        tokens.write_text(f'{TOKEN},administrator,administrator,"system:masters"\n', "utf-8")
        return (
            *("--etcd-servers", ETCD, "--secure-port", str(PORT), "--advertise-address", self.host.address),
            *("--cert-dir", str(self.certificate.parent), "--token-auth-file", str(tokens)),
            *("--service-account-issuer", ISSUER, "--service-account-signing-key-file", str(accounts)),
            *("--service-account-key-file", str(accounts), "--service-cluster-ip-range", SERVICES),
            # Tokens for a pod, as newer versions give them out.
            *("--authorization-mode", "RBAC", "--feature-gates", "BoundServiceAccountTokenVolume=true"),
        )

    def _is_ready(self) -> bool:
        if not self.certificate.exists():
            return False
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "administrator", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "administrator"}}],
            "current-context": "test",
        }
        self.kubeconfig.write_text(json.dumps(config), "utf-8")
        try:
            return self.kubectl("get", "--raw", "/readyz") == "ok"
        except AssertionError:
            return False
