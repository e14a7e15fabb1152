from amqp_broker.cli.main import main

main()
