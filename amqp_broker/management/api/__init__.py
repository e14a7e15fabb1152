"""The endpoints of the HTTP API, a module per noun: bodies as structs, handlers as functions.

How a request is read and an answer written is in `http/`; what a document of definitions contains is in `documents/`.
Read `queues.py` first.
"""
