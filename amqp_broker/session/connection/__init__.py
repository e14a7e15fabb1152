"""The parts of a session that concern the connection as a whole. `session.py` above this folder has them.

`handshake.py` has class connection; `commit_gate.py` holds confirms and replies until the journal has committed;
`blocking.py` has the reasons for which nothing is read.
"""
