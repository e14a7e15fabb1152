from compat.matrix.rows import Row

INSTALL = (("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"),)
PROGRAMS = (("node", "nodejs"), ("npm", "npm"))

ROWS = (
    Row("amqplib", "Node", "2.3.1", ("node", "amqplib.js"), INSTALL, PROGRAMS),
    Row("amqp-connection-manager", "Node", "5.0.0", ("node", "connection_manager.js"), INSTALL, PROGRAMS),
    Row("rabbitmq-client", "Node", "5.0.8", ("node", "rabbitmq_client.js"), INSTALL, PROGRAMS),
    Row("@cloudamqp/amqp-client", "Node", "4.1.1", ("node", "cloudamqp.js"), INSTALL, PROGRAMS),
    Row("rascal", "Node", "21.0.1", ("node", "rascal.js"), INSTALL, PROGRAMS),
)
