"""Scenarios that need a configuration, or change the state of the whole broker.

Each module here is an area: its `AREA` has the lines of rabbitmq.conf, and the first version that knows them.
`suite.py` starts the broker anew for each.
"""
