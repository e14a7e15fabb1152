// Command streadway plays the scenarios of compat/README.md with streadway/amqp, the library that amqp091-go came from.
package main

import . "amqp-broker.example/clients/harness"

func main() { Play(scenarios, "") }

var scenarios = map[string]func() error{
	"connect":        connect,
	"topology":       topology,
	"confirms":       confirms,
	"returns":        returns,
	"consume":        consume,
	"requeue":        requeue,
	"dead_letter":    deadLetter,
	"ttl":            ttl,
	"priority":       priority,
	"rpc":            rpc,
	"server_named":   serverNamed,
	"cancel":         cancel,
	"stream":         stream,
	"large":          large,
	"tls":            overTLS,
	"wrong_password": wrongPassword,
	"forced_close":   forcedClose,
	"reconnect":      reconnect,
}
