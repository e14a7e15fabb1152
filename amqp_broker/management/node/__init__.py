"""The node as the API, the page and the metrics see it: facts about the process, rates, and totals.

Everything here is read without the API, which is imported with the first request. Read `node.py` first.
"""
