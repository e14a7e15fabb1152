"""Sources of settings: the precedence among them, and the formats of configuration files.

Only `precedence.py` reads files and the environment; the other modules take text. Read `precedence.py` first, then
`conf_keys.py`.
"""
