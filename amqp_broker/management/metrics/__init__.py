"""The metrics for Prometheus: their declarations, and the text format in which they are served.

Rates and samples of the HTTP API are in `management/node/rates.py`. Read `declarations.py` first.
"""
