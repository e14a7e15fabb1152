"""Settings of administrators as plain values: users, permissions, policies, limits, metadata.

Nothing here knows queues, exchanges or vhosts; `users.py`, `vhost_policies.py` and `vhost_limits.py` beside the package
apply the values. Read `access.py` first.
"""
