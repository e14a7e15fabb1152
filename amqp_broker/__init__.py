"""amqp-broker: an AMQP 0-9-1 broker that RabbitMQ's clients cannot tell from RabbitMQ.

errors, message, fields, config   reply codes, the message, field tables, settings
protocol                          bytes to frames and methods, and back
broker                            vhosts, exchanges, queues, consumers, users
session                           one connection: methods meet verbs
server                            sockets, the clock, the loop
testing                           a broker inside of tests, and the pytest plugin
cli                               the command line
"""
