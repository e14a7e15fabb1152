"""The report of a run of tests: one HTML file about the tests that failed.

`page.py` writes the file from the reports of vhosts (`management/documents/vhost_report.py`). `life_graph.py` and
`topology_graph.py` make the graphs that `drawing.py` draws. Nothing here needs a broker.
"""
