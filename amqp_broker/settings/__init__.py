"""Settings: one declaration each, and the versions of RabbitMQ that set some of their defaults.

Their values from the command line, the environment and files are found in `sources/`. Settings that an administrator
changes while the broker runs (policies, limits) are in `broker/admin/`. Read `settings.py` first.
"""
