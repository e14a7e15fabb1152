"""HTTP as values: endpoints, requests, answers, logins and tags, paths, bodies, lists, JSON.

Nothing here knows a queue or an exchange; the endpoints themselves are in `api/`. Read `endpoint.py` first.
"""
