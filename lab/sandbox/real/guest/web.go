package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// web answers with its pod, its node and its version. It takes WORK for a request, is ready after DELAY, and
// on SIGTERM ends what it has begun and leaves: an application that behaves. Unless it is told otherwise: with
// STUBBORN it goes on until it is killed, with CRASH it ends by itself after so long, with FLAP it is ready and
// not ready in turn.
func web() {
	log.SetOutput(os.Stdout)
	work, delay, crash, flap := seconds("WORK"), seconds("DELAY"), seconds("CRASH"), seconds("FLAP")
	answer := fmt.Sprintf("%s %s %s\n", os.Getenv("POD"), os.Getenv("NODE"), os.Getenv("VERSION"))
	started := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		since := time.Since(started)
		if since < delay || (flap > 0 && since/flap%2 == 1) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(work)
		fmt.Fprint(w, answer)
	})
	server := &http.Server{Addr: ":8080", Handler: mux}
	if crash > 0 {
		time.AfterFunc(crash, func() { fail(errors.New("told to crash")) })
	}
	ended := make(chan struct{})
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		<-signals
		log.Print("told to end")
		if os.Getenv("STUBBORN") != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		close(ended)
	}()
	log.Print("listening: ", answer)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		fail(err)
	}
	<-ended
}

// seconds reads a duration such as 20ms from the environment; nothing there is no time.
func seconds(name string) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return 0
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		fail(err)
	}
	return duration
}
