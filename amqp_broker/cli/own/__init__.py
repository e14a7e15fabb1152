"""Commands that only this broker has (serve, run, faults, demo, compare), declared with click.

A module is named after its command and only translates: options to calls, errors to sentences and exit codes. The
work itself is done in the package that it calls. Read `program.py` first, then `serve.py`.
"""
