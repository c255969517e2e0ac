package wire

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"sequins/bench/internal/data"
)

// FillRedis gives a server of redis the values of all records. key appends the key of record i to dst.
func FillRedis(addr string, spec data.Spec, key func(dst []byte, i int) []byte) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	answers := make(chan error, 1)
	go func() {
		in := bufio.NewReader(c)
		for range spec.Records {
			line, err := in.ReadString('\n')
			if err == nil && line != "+OK\r\n" {
				err = fmt.Errorf("redis: %q", line)
			}
			if err != nil {
				answers <- err
				return
			}
		}
		answers <- nil
	}()
	out := bufio.NewWriterSize(c, 1<<20)
	var k, v []byte
	for i := range spec.Records {
		k, v = key(k[:0], i), spec.Value(v[:0], i)
		fmt.Fprintf(out, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(k), k, len(v), v)
	}
	return errors.Join(out.Flush(), <-answers)
}
