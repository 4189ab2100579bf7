// A program with zmq4, ZeroMQ in Go without libzmq: does with its sockets what the lines of a test
// say.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/plain"
)

const retry = 50 * time.Millisecond

type maker func(context.Context, ...zmq4.Option) zmq4.Socket

var makers = map[string]maker{
	"PUSH":   zmq4.NewPush,
	"PULL":   zmq4.NewPull,
	"PUB":    zmq4.NewPub,
	"SUB":    zmq4.NewSub,
	"REQ":    zmq4.NewReq,
	"REP":    zmq4.NewRep,
	"DEALER": zmq4.NewDealer,
	"ROUTER": zmq4.NewRouter,
}

type received struct {
	message zmq4.Msg
	err     error
}

// socket is one of the library, whose Recv has no time: it goes on when the test gives up.
type socket struct {
	zmq4.Socket
	waiting chan received
}

var sockets = map[string]*socket{}

func word(part []byte) string {
	if len(part) == 0 {
		return "-"
	}
	return hex.EncodeToString(part)
}

func part(text string) []byte {
	if text == "-" {
		return []byte{}
	}
	found, err := hex.DecodeString(text)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func open(words []string) (string, error) {
	options := []zmq4.Option{
		zmq4.WithAutomaticReconnect(words[2] == "connect"),
		zmq4.WithDialerRetry(retry),
		zmq4.WithDialerMaxRetries(-1),
	}
	if len(words) > 4 {
		options = append(options, zmq4.WithSecurity(plain.Security(words[4], words[5])))
	}
	made := &socket{Socket: makers[words[1]](context.Background(), options...)}
	sockets[words[0]] = made
	if words[2] == "bind" {
		return "did", made.Listen(words[3])
	}
	return "did", made.Dial(words[3])
}

// recv waits for a message; a connection that has ended is one that comes again.
func recv(of *socket, ms int) (string, error) {
	end := time.After(time.Duration(ms) * time.Millisecond)
	for {
		if of.waiting == nil {
			waiting := make(chan received, 1)
			of.waiting = waiting
			go func() {
				message, err := of.Recv()
				waiting <- received{message, err}
			}()
		}
		select {
		case <-end:
			return "none", nil
		case found := <-of.waiting:
			of.waiting = nil
			if found.err != nil {
				log.Print(found.err)
				time.Sleep(retry)
				continue
			}
			words := []string{"got"}
			for _, frame := range found.message.Frames {
				words = append(words, word(frame))
			}
			return strings.Join(words, " "), nil
		}
	}
}

func send(by *socket, words []string) error {
	frames := make([][]byte, 0, len(words))
	for _, text := range words {
		frames = append(frames, part(text))
	}
	return by.SendMulti(zmq4.NewMsgFrom(frames...))
}

func take(words []string) (string, error) {
	if words[0] == "open" {
		return open(words[1:])
	}
	of := sockets[words[1]]
	switch words[0] {
	case "recv":
		ms, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		return recv(of, ms)
	case "send":
		return "did", send(of, words[2:])
	case "subscribe":
		return "did", of.SetOption(zmq4.OptionSubscribe, string(part(words[2])))
	case "unsubscribe":
		return "did", of.SetOption(zmq4.OptionUnsubscribe, string(part(words[2])))
	case "close":
		return "did", of.Close()
	}
	return "", fmt.Errorf("no such word: %s", words[0])
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		answer, err := take(strings.Split(lines.Text(), " "))
		if err != nil {
			answer = "refused " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
}
