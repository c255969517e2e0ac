package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"

	"sequins/bench/internal/data"
)

const pipeline = 1000 // commands that wait for their answers

// FillRedis gives a server of redis all records of a data set.
func FillRedis(addr string, spec data.Spec) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
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
	for i := range spec.Records {
		key, value = spec.Key(key[:0], i), spec.Value(value[:0], i)
		if err := writeSet(out, key, value); err != nil {
			return err
		}
		if i%pipeline == pipeline-1 {
			if err := answers(pipeline); err != nil {
				return err
			}
		}
	}
	return answers(spec.Records % pipeline)
}

func writeSet(w io.Writer, key, value []byte) error {
	_, err := fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
	return err
}
