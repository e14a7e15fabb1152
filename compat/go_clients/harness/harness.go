// Package harness is the programs' protocol with the harness, whose other side is compat/matrix/playing.py.
package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const Patience = 15 * time.Second

// Unsupported is why a client has no way to do what a scenario asks.
type Unsupported string

func (reason Unsupported) Error() string { return string(reason) }

var answers = bufio.NewScanner(os.Stdin)

// Play plays the scenarios that the program is asked for; the client cannot play one that is not there, for the reason.
func Play(scenarios map[string]func() error, otherwise string) {
	for _, name := range os.Args[1:] {
		err := error(Unsupported(otherwise))
		if play, ok := scenarios[name]; ok {
			err = play()
		}
		var unsupported Unsupported
		switch {
		case err == nil:
			fmt.Printf("RESULT %s ok\n", name)
		case errors.As(err, &unsupported):
			fmt.Printf("RESULT %s unsupported %s\n", name, unsupported)
		default:
			fmt.Printf("RESULT %s failed %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}

// Ask lets the harness restart the broker ("RESTART"), close all connections ("CLOSE"), or use the broker ("USE") until it
// leaves it ("LEAVE").
func Ask(what string) error {
	fmt.Println(what)
	if !answers.Scan() || answers.Text() != "DONE" {
		return fmt.Errorf("the harness did not %s", what)
	}
	return nil
}

// Name is a unique name of a queue or exchange.
func Name(stem string) string { return os.Getenv("PREFIX") + "." + stem }

func Check(ok bool, format string, arguments ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}
