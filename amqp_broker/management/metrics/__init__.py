"""The metrics for Prometheus: which there are, and their text.

Rates and samples of the HTTP API are in `management/rates.py`. Read `declarations.py` first.
"""
