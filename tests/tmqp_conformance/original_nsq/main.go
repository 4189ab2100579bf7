// The original nsqd and nsqlookupd in one process, for the conformance pack of NSQ.
//
// It listens on free ports of the loopback interface, prints their addresses as one line of JSON,
// and ends when its standard input does.  The first argument is an empty folder for nsqd's files.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/nsqio/nsq/nsqd"
	"github.com/nsqio/nsq/nsqlookupd"
)

func main() {
	quiet := log.New(io.Discard, "", 0)

	lookup := nsqlookupd.NewOptions()
	lookup.Logger = quiet
	lookup.TCPAddress = "127.0.0.1:0"
	lookup.HTTPAddress = "127.0.0.1:0"
	lookup.BroadcastAddress = "127.0.0.1"
	lookupd, err := nsqlookupd.New(lookup)
	check(err)
	go func() { check(lookupd.Main()) }()

	options := nsqd.NewOptions()
	options.Logger = quiet
	options.TCPAddress = "127.0.0.1:0"
	options.HTTPAddress = "127.0.0.1:0"
	options.HTTPSAddress = ""
	options.BroadcastAddress = "127.0.0.1"
	options.DataPath = os.Args[1]
	daemon, err := nsqd.New(options)
	check(err)
	go func() { check(daemon.Main()) }()

	text, err := json.Marshal(map[string]string{
		"":            daemon.RealTCPAddr().String(),
		"http":        daemon.RealHTTPAddr().String(),
		"lookup":      lookupd.RealTCPAddr().String(),
		"lookup-http": lookupd.RealHTTPAddr().String(),
	})
	check(err)
	fmt.Println(string(text))
	_, _ = io.Copy(io.Discard, os.Stdin)
	daemon.Exit()
	lookupd.Exit()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
