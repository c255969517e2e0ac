package resp_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"sequins/server/resp"
)

// BenchmarkGet sends GETs one at a time.
func BenchmarkGet(b *testing.B) { benchmarkPipeline(b, 1) }

// BenchmarkPipeline sends pipelines of a hundred GETs. The time is that of a pipeline.
func BenchmarkPipeline(b *testing.B) { benchmarkPipeline(b, 100) }

func benchmarkPipeline(b *testing.B, depth int) {
	c := startNames(b, resp.Options{}).dial(b)
	var in, want strings.Builder
	for i := range depth {
		in.WriteString(command("GET", fmt.Sprintf("names/key-%d", i)))
		value := fmt.Sprintf("value-%d", i)
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(value), value)
	}
	pipeline, answers := []byte(in.String()), make([]byte, want.Len())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(pipeline); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, answers); err != nil {
			b.Fatal(err)
		}
	}
	if !bytes.Equal(answers, []byte(want.String())) {
		b.Errorf("%q, want %q", answers, &want)
	}
}
