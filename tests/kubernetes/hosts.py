"""Two hosts: one is for the control plane and the node, the other is outside of the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tests.hosts import Host, ip

BRIDGE = "pods"
CLUSTER, OUTSIDE = "10.213.78.1", "10.213.78.2"
# Services have virtual addresses. This one is the API server's in the cluster.
SERVICES, API_SERVICE = "10.96.0.0/24", "10.96.0.1"


class Hosts(NamedTuple):
    cluster: Host
    outside: Host


@contextmanager
def hosts() -> Iterator[Hosts]:
    """Provide both hosts. The bridge that connects them is for the pods, too."""
    pair = Hosts(Host(f"kube{os.getpid()}", CLUSTER), Host(f"out{os.getpid()}", OUTSIDE))
    with ExitStack() as stack:
        for host in pair:
            ip("netns", "add", host.name)
            stack.callback(ip, "netns", "del", host.name)
            ip("-n", host.name, "link", "set", "lo", "up")
        here, there = pair.cluster.name, pair.outside.name
        ip("-n", here, "link", "add", BRIDGE, "type", "bridge")
        ip("-n", here, "address", "add", f"{CLUSTER}/24", "dev", BRIDGE)
        ip("-n", here, "link", "set", BRIDGE, "up")
        # In place of a proxy on each node.
        ip("-n", here, "address", "add", f"{API_SERVICE}/32", "dev", "lo")
        ip("-n", here, "link", "add", "cable", "type", "veth", "peer", "name", "eth0", "netns", there)
        ip("-n", here, "link", "set", "cable", "master", BRIDGE, "up")
        ip("-n", there, "address", "add", f"{OUTSIDE}/24", "dev", "eth0")
        ip("-n", there, "link", "set", "eth0", "up")
        yield pair
