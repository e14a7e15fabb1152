"""Findings of what is wrong now: alarms, queues that grow, idle consumers, lost messages.

`finding.py` has the form of a finding and all kinds; `queue_findings.py`, `client_findings.py` and `node_findings.py`
look for them when they are asked for. Read `finding.py` first.
"""
