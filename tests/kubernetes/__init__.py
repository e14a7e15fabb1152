"""A Kubernetes cluster without a container engine, for Spark's own way to it.

The API server, the scheduler and the controllers are Kubernetes itself: `build.sh` compiles them from the sources of
Debian's package. `programs.py` keeps them in the user's cache, `control_plane.py` runs them with Debian's etcd and
kubectl, and `hosts.py` gives them a network of their own. `node.py` stands in for the kubelet, the container runtime,
the network plugin and the cluster's DNS.
"""
