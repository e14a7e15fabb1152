// Command amqp091 plays the scenarios of compat/README.md with amqp091-go, or with streadway/amqp, the library that it came
// from: go_clients/streadway.mod puts that one in its place.
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
