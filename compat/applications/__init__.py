"""Small applications of frameworks, each with a worker and a sender of jobs.

`application.py` says what an application is and what its program prints, and `running.py` runs the program. Each folder
has one application, declared in its `row.py` and built in a cache (`building.py`). `test_applications.py` plays the
cases of `playing.py` with all of them, here and at RabbitMQ: jobs, a broker that is killed in the middle of them, and
what is refused.

`go_cdk` and `dapr` run the test suites of these projects as they are (`go_suites.py`). The suites have the address of
the broker in their source, so they run in a network of their own (`own_network.py`).
"""
