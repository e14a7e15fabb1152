"""The test suite on machines that differ in one thing each: `python3 -m tests.environments --list`.

`environments_table.py` lists the environments; read it first. `__main__.py` clones the repository and runs `make`.
"""
