"""The versions of RabbitMQ that amqp-broker is compared with, as processes on this machine.

`oracle.py` lists them: each is a Debian package. The package of this system is used if it has the version; otherwise
`debian_root.py` installs the release with that package into a folder of the user's cache, and `enter_root.sh` runs
commands there. `rabbitmq.py` starts and stops a RabbitMQ. `python -m compat.oracles` has all of them ready.
"""
