"""Ansible's modules for RabbitMQ: one playbook sets a broker up, and another takes everything down.

`present.yml` and `absent.yml` use the collection community.rabbitmq, whose modules run RabbitMQ's commands and ask the
HTTP API. Ansible changes nothing the second time if it reads what it wrote, so each playbook is played twice
(`test_ansible.py`), here and at each RabbitMQ.
"""
