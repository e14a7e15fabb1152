"""Clients as the broker sees them: abstract connections and channels, and what each of them counts.

`session/` derives from these classes and has the protocol. Read `client_connection.py` first.
"""
