package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"sequins/bench/internal/wire"
)

const profileTime = 5 * time.Second

// profile has the reference profile itself while 64 connections ask it for keys that it has.
func (r *run) profile(name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fetched := make(chan error, 1)
	go func() {
		defer cancel()
		fetched <- fetch(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", r.debug, profileTime/time.Second), name)
	}()
	s := r.servers[0]
	if _, err := wire.Run(ctx, wire.Load{Addr: s.daemon.Addr, Conns: 64, Requests: s.present, Parse: s.parse, Check: r.present(s)}); err != nil {
		return err
	}
	return <-fetched
}

func fetch(url, name string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, resp.Body)
	return err
}
