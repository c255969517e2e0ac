package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sequins/bench/internal/data"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/wire"
	"sequins/test/sequencefiles"
)

// build writes the source of sequins: the keys of redis without the name of the db.
func (r *run) build(path string) error {
	dir := filepath.Join(path, data.DB, data.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "part-r-00000"))
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{SyncSeed: "redis"})
	if err != nil {
		return err
	}
	var v []byte
	for i := range r.spec.Records {
		v = r.spec.Value(v[:0], i)
		if err := w.Append([]byte(strings.TrimPrefix(key(i), data.DB+"/")), v); err != nil {
			return err
		}
	}
	return w.Close()
}

// fill gives redis the records.
func (r *run) fill(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	answers := make(chan error, 1)
	go func() {
		in := bufio.NewReader(c)
		for range r.spec.Records {
			line, err := in.ReadString('\n')
			if err == nil && line != "+OK\r\n" {
				err = fmt.Errorf("answer %q", line)
			}
			if err != nil {
				answers <- err
				return
			}
		}
		answers <- nil
	}()
	out := bufio.NewWriter(c)
	for i := range r.spec.Records {
		k, v := key(i), r.spec.Value(nil, i)
		fmt.Fprintf(out, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(k), k, len(v), v)
	}
	err = out.Flush()
	return errors.Join(err, <-answers)
}

// profile takes a profile of sequins while it answers GETs, alone or in pipelines.
func (r *run) profile(n int) error {
	s := r.servers[len(r.servers)-1]
	l := wire.Load{Addr: s.addr, Conns: slices.Max(connections), Requests: r.pipelines, Parse: r.parse, Check: func(int, wire.Reply) error { return nil }}
	name := *profile + ".pipelines"
	if n == 1 {
		name, l.Requests, l.Parse = *profile+".single", nil, wire.Redis
		for _, ids := range r.asked {
			for _, id := range ids {
				l.Requests = append(l.Requests, wire.RedisGet([]byte(key(id))))
			}
		}
	}
	setup.Logf("profile of %d GETs at a time: %s", n, name)
	return wire.Profile(l, r.debug, name)
}
