package main

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"sequins/bench/internal/daemon"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/wire"
)

// startRedis starts redis and gives it all records.
func (r *run) startRedis(cpus string, add func(*daemon.Daemon, error, ...*server) error) error {
	d, err := daemon.Redis(cpus)
	if err := add(d, err, &server{name: "redis", request: wire.RedisGet, parse: wire.Redis}); err != nil {
		return err
	}
	c, err := net.Dial("tcp", d.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	setup.Logf("filling redis")
	return r.fillRedis(c)
}

const pipeline = 1000 // commands that wait for their answers

func (r *run) fillRedis(c net.Conn) error {
	in, out := bufio.NewReader(c), bufio.NewWriterSize(c, 1<<20)
	answers := func(n int) error {
		if err := out.Flush(); err != nil {
			return err
		}
		for range n {
			line, err := in.ReadString('\n')
			if err == nil && line != "+OK\r\n" {
				err = fmt.Errorf("redis: %q", line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	var key, value []byte
	for i := range r.spec.Records {
		key, value = r.spec.Key(key[:0], i), r.spec.Value(value[:0], i)
		if err := writeSet(out, key, value); err != nil {
			return err
		}
		if i%pipeline == pipeline-1 {
			if err := answers(pipeline); err != nil {
				return err
			}
		}
	}
	return answers(r.spec.Records % pipeline)
}

func writeSet(w io.Writer, key, value []byte) error {
	_, err := fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
	return err
}
