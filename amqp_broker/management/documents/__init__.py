"""JSON documents that describe a broker: definitions, snapshots, and field tables as JSON.

Nothing here knows HTTP: a broker loads definitions before it opens a port, and the command line reads them without
one. Read `exporting.py` first.
"""
