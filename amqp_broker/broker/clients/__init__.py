"""Clients as the broker sees them: connections and channels, as abstract classes from which `session/` derives.

The protocol is in `session/`. Read `client_connection.py` first.
"""
