"""A node that runs pods as processes of this machine: `python -m tests.kubernetes.node KUBECONFIG IMAGES FOLDER`.

It stands in for the kubelet, the container runtime, the network plugin and the cluster's DNS, and does as much of their
work as Spark's pods need. A pod has network, mounts, processes and host name of its own, and an `/etc/hosts` with the
names of services. It sees all other files of the machine. An image is an entry of the JSON file IMAGES: commands that
prepare the mounts (`prepare`), the entrypoint, its folder, and variables (`environment`).
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.kubernetes.api import Api, Missing
from tests.kubernetes.hosts import API_SERVICE, BRIDGE, CLUSTER

NAME = "node"
STEP_S = 0.1
SIGN_OF_LIFE_S = 5.0
RESOURCES = {"cpu": "4", "memory": "8Gi", "pods": "20"}
ALONE = ("unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def path_of(pod: Any) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


class Pod:
    """A pod with one container, and its process."""

    def __init__(self, api: Api, pod: Any, image: Any, number: int, folder: Path) -> None:
        self.api = api
        self.pod = pod
        self.image = image
        self.container = pod["spec"]["containers"][0]
        self.address = f"{CLUSTER.rpartition('.')[0]}.{number}"
        self.folder = folder
        self.hosts = folder / "hosts"
        self.path = path_of(pod)
        self.started = now()
        self.is_reported = False
        folder.mkdir(parents=True, exist_ok=True)
        self.hosts.touch()
        script = folder / "pod.sh"
        script.write_text("\n".join(self._script()), "utf-8")
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*ALONE, "bash", str(script)], env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._connect(f"pod{number}")
        self._report("Running", {"running": {"startedAt": self.started}})

    def follow(self) -> None:
        """Report the end of the process, once."""
        code = self.process.poll()
        if code is not None and not self.is_reported:
            self.is_reported = True
            ended = {"exitCode": code, "startedAt": self.started, "finishedAt": now()}
            reason = "Error" if code else "Completed"
            self._report("Failed" if code else "Succeeded", {"terminated": {**ended, "reason": reason}})

    def kill(self) -> None:
        """Kill all processes of the pod; its network and mounts end with them."""
        self.process.kill()
        self.process.wait()

    def _connect(self, cable: str) -> None:
        namespace = Path(f"/proc/{self.process.pid}/ns/net")
        while namespace.readlink() == Path("/proc/self/ns/net").readlink():
            time.sleep(0.01)
        for words in (
            f"add {cable} type veth peer name eth0 netns {self.process.pid}",
            f"set {cable} master {BRIDGE} up",
        ):
            subprocess.run(["ip", "link", *words.split()], check=True)

    def _report(self, phase: str, state: dict[str, object]) -> None:
        is_ready = phase == "Running"
        container = {
            "name": self.container["name"],
            "image": self.container["image"],
            "imageID": "",
            "ready": is_ready,
            "started": is_ready,
            "restartCount": 0,
            "state": state,
        }
        ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": now()}
        status = {
            "phase": phase,
            "startTime": self.started,
            "hostIP": CLUSTER,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [ready],
            "containerStatuses": [container],
        }
        self.api.patch(f"{self.path}/status", {"status": status})

    def _environment(self) -> dict[str, str]:
        service = {"KUBERNETES_SERVICE_HOST": API_SERVICE, "KUBERNETES_SERVICE_PORT": "443"}
        given = {entry["name"]: self._value(entry) for entry in self.container.get("env", [])}
        return {**service, **self.image["environment"], **given}

    def _value(self, entry: Any) -> str:
        source = entry.get("valueFrom")
        return str(self._field(source["fieldRef"]["fieldPath"])) if source else entry.get("value", "")

    def _field(self, path: str) -> str:
        if path == "status.podIP":
            return self.address
        kind, _, name = path.partition(".")
        return str(self.pod[kind][name])

    def _script(self) -> list[str]:
        """Return the lines of what the first process does."""
        places = {volume["name"]: self._volume(volume) for volume in self.pod["spec"].get("volumes", [])}
        wanted = self.container.get("volumeMounts", [])
        mounts = [(shlex.quote(str(places[mount["name"]])), shlex.quote(mount["mountPath"])) for mount in wanted]
        command = [*self.image["entrypoint"], *self.container.get("args", [])]
        return [
            "set -e",
            "until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done",
            f"ip address add {self.address}/24 dev eth0",
            "ip link set lo up && ip link set eth0 up",
            f"ip route add default via {CLUSTER}",
            shlex.join(["hostname", self.pod["metadata"]["name"]]),
            shlex.join(["mount", "--bind", str(self.hosts), "/etc/hosts"]),
            # No name server answers.
            "[ ! -f /etc/resolv.conf ] || mount --bind /dev/null /etc/resolv.conf",
            self.image["prepare"],
            *(line for source, place in mounts for line in (f"mkdir -p {place}", f"mount --bind {source} {place}")),
            f"cd {shlex.quote(self.image['folder'])}",
            f"exec {shlex.join(command)}",
        ]

    def _volume(self, volume: Any) -> Path:
        """Return the folder with the content of a volume."""
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        folder = Path(self.folder, volume["name"])
        folder.mkdir(exist_ok=True)
        if "configMap" in volume:
            self._copy(volume["configMap"], folder)
        for source in volume.get("projected", {}).get("sources", []):
            self._project(source, folder)
        if not {"configMap", "projected", "emptyDir"} & set(volume):
            raise NotImplementedError(f"this node has no volumes of the kind {sorted(volume)}")
        return folder

    def _project(self, source: Any, folder: Path) -> None:
        metadata = self.pod["metadata"]
        if token := source.get("serviceAccountToken"):
            account = self.pod["spec"]["serviceAccountName"]
            bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            spec = {"expirationSeconds": token["expirationSeconds"], "boundObjectRef": bound, "audiences": []}
            answer = self.api.post(
                f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token", {"spec": spec}
            )
            (folder / token["path"]).write_text(answer["status"]["token"], "utf-8")
        if copied := source.get("configMap"):
            self._copy(copied, folder)
        for item in source.get("downwardAPI", {}).get("items", []):
            (folder / item["path"]).write_text(self._field(item["fieldRef"]["fieldPath"]), "utf-8")

    def _copy(self, source: Any, folder: Path) -> None:
        """Write the files of a ConfigMap."""
        content = self.api.get(f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/configmaps/{source['name']}")
        items = source.get("items") or [{"key": key, "path": key} for key in content.get("data", {})]
        for item in items:
            (folder / item["path"]).write_text(content["data"][item["key"]], "utf-8")


class Node:
    """Runs the pods that the scheduler has bound to this node."""

    def __init__(self, api: Api, images: Any, folder: Path) -> None:
        self.api = api
        self.images = images
        self.folder = folder
        self.pods: dict[str, Pod] = {}
        self.number = 100
        self.next_sign = 0.0
        node = {"metadata": {"name": NAME}, "spec": {"podCIDR": f"{CLUSTER}/24"}}
        api.post("/api/v1/nodes", node)

    def step(self) -> None:
        """Do what has become necessary."""
        self._give_sign_of_life()
        found = {pod["metadata"]["uid"]: pod for pod in self._pods()}
        for uid, pod in found.items():
            if pod["metadata"].get("deletionTimestamp"):
                if uid in self.pods:
                    self.pods[uid].kill()
                self.api.delete(path_of(pod))
            elif uid in self.pods:
                self.pods[uid].follow()
            elif pod["status"]["phase"] == "Pending":
                # Spark makes the ConfigMap of a pod after the pod: try again in the next step.
                with suppress(Missing):
                    self.pods[uid] = self._start(pod)
        for uid in self.pods.keys() - found.keys():
            self.pods.pop(uid).kill()
        self._publish_names()

    def _start(self, pod: Any) -> Pod:
        image = self.images[pod["spec"]["containers"][0]["image"]]
        started = Pod(self.api, pod, image, self.number, self.folder / pod["metadata"]["name"])
        self.number += 1
        return started

    def close(self) -> None:
        for pod in self.pods.values():
            pod.kill()

    def _give_sign_of_life(self) -> None:
        if time.monotonic() < self.next_sign:
            return
        self.next_sign = time.monotonic() + SIGN_OF_LIFE_S
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now()}
        status = {"capacity": RESOURCES, "allocatable": RESOURCES, "conditions": [ready]}
        self.api.patch(f"/api/v1/nodes/{NAME}/status", {"status": status})

    def _pods(self) -> list[Any]:
        return list(self.api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}")["items"])

    def _publish_names(self) -> None:
        """Write the names of the services into the pods, as the cluster's DNS has them."""
        names = ["127.0.0.1 localhost"]
        for service in self.api.get("/api/v1/services")["items"]:
            metadata, spec = service["metadata"], service["spec"]
            name = f"{metadata['name']}.{metadata['namespace']}.svc"
            addresses = [spec["clusterIP"]] if spec["clusterIP"] != "None" else self._selected(spec["selector"])
            names += [f"{address} {name} {name}.cluster.local" for address in addresses]
        for pod in self.pods.values():
            text = "\n".join([*names, f"{pod.address} {pod.pod['metadata']['name']}", ""])
            if pod.hosts.read_text("utf-8") != text:
                pod.hosts.write_text(text, "utf-8")

    def _selected(self, labels: dict[str, str]) -> list[str]:
        return [pod.address for pod in self.pods.values() if labels.items() <= pod.pod["metadata"]["labels"].items()]


def main(kubeconfig: str, images: str, folder: str) -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    node = Node(Api(Path(kubeconfig)), json.loads(Path(images).read_text("utf-8")), Path(folder))
    try:
        while True:
            node.step()
            time.sleep(STEP_S)
    finally:
        node.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
