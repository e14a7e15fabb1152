// Command play plays the scenarios of compat/README.md with amqp091-go.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

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

const patience = 15 * time.Second

var answers = bufio.NewScanner(os.Stdin)

func main() {
	for _, name := range os.Args[1:] {
		play, ok := scenarios[name]
		if !ok {
			fmt.Printf("RESULT %s failed there is no such scenario here\n", name)
		} else if err := play(); err != nil {
			fmt.Printf("RESULT %s failed %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Printf("RESULT %s ok\n", name)
		}
	}
}

// ask lets the harness restart the broker ("RESTART") or close all connections ("CLOSE").
func ask(what string) error {
	fmt.Println(what)
	if !answers.Scan() || answers.Text() != "DONE" {
		return fmt.Errorf("the harness did not %s", what)
	}
	return nil
}

// name returns a unique name for a queue or exchange.
func name(stem string) string { return os.Getenv("PREFIX") + "." + stem }

func check(ok bool, format string, arguments ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}
