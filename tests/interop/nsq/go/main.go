// A program with go-nsq, the client of NSQ's makers: publishes and consumes as the lines of a test
// say, one JSON value a line.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nsqio/go-nsq"
)

type settings struct {
	Nsqd        []string
	Lookupd     []string
	Ca          string
	Compression string
	Auth        string
}

type line struct {
	Do      string
	Topic   string
	Channel string
	Bodies  []string
	Ms      int
}

var output sync.Mutex

// say tells the test something.
func say(fields map[string]any) {
	output.Lock()
	defer output.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(fields); err != nil {
		log.Fatal(err)
	}
}

// config is how to connect.
func config(given settings) *nsq.Config {
	chosen := nsq.NewConfig()
	chosen.MaxInFlight = 10
	chosen.LookupdPollInterval = time.Second
	chosen.LookupdPollJitter = 0
	chosen.DefaultRequeueDelay = 0
	if given.Ca != "" {
		pem, err := os.ReadFile(given.Ca)
		if err != nil {
			log.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		chosen.TlsV1 = true
		chosen.TlsConfig = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	}
	chosen.Snappy = given.Compression == "snappy"
	chosen.Deflate = given.Compression == "deflate"
	chosen.AuthSecret = given.Auth
	return chosen
}

// handle does with a message what its body says.
func handle(message *nsq.Message) error {
	body := string(message.Body)
	say(map[string]any{"message": body, "attempts": message.Attempts})
	word, _, _ := strings.Cut(body, " ")
	if message.Attempts > 1 {
		word = "fine"
	}
	switch word {
	case "again":
		message.RequeueWithoutBackoff(0)
	case "slow":
		message.DisableAutoResponse()
		message.Touch()
		time.AfterFunc(600*time.Millisecond, message.Touch)
		time.AfterFunc(1200*time.Millisecond, message.Touch)
		time.AfterFunc(1600*time.Millisecond, message.Finish)
	case "forgotten":
		message.DisableAutoResponse()
	}
	return nil
}

func consume(given settings, asked line) error {
	consumer, err := nsq.NewConsumer(asked.Topic, asked.Channel, config(given))
	if err != nil {
		return err
	}
	consumer.SetLoggerLevel(nsq.LogLevelWarning)
	consumer.AddHandler(nsq.HandlerFunc(handle))
	if len(given.Lookupd) > 0 {
		return consumer.ConnectToNSQLookupds(given.Lookupd)
	}
	return consumer.ConnectToNSQDs(given.Nsqd)
}

func publish(producer *nsq.Producer, asked line) error {
	bodies := make([][]byte, 0, len(asked.Bodies))
	for _, body := range asked.Bodies {
		bodies = append(bodies, []byte(body))
	}
	if asked.Do == "defer" {
		return producer.DeferredPublish(asked.Topic, time.Duration(asked.Ms)*time.Millisecond, bodies[0])
	}
	if len(bodies) == 1 {
		return producer.Publish(asked.Topic, bodies[0])
	}
	return producer.MultiPublish(asked.Topic, bodies)
}

func main() {
	var given settings
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		log.Fatal(err)
	}
	producer, err := nsq.NewProducer(given.Nsqd[0], config(given))
	if err != nil {
		log.Fatal(err)
	}
	producer.SetLoggerLevel(nsq.LogLevelWarning)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var asked line
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		did := "publish"
		if asked.Do == "consume" {
			did = "consume"
			err = consume(given, asked)
		} else {
			err = publish(producer, asked)
		}
		if err != nil {
			say(map[string]any{"refused": err.Error()})
		} else {
			say(map[string]any{"did": did})
		}
	}
}
