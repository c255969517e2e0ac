package sequencefile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	peer "github.com/colinmarc/sequencefile"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// benchRecords records of 116 bytes each (a key of 16, a value of 100) make the files of the benchmarks.
const benchRecords = 200_000

// benchRecord fills in a key and a value that compress about as records of a job do: words, numbers, some noise.
func benchRecord(rng *rand.Rand, i int, buf []byte) (key, value []byte) {
	words := [...]string{"customer", "account", "merchant", "score", "country", "US", "DE", "true", "false", "risk", "0.00"}
	buf = fmt.Appendf(buf[:0], "user:%011d", i*7919)
	for len(buf) < 116 {
		buf = append(buf, words[rng.IntN(len(words))]...)
		buf = fmt.Appendf(buf, "=%x,", rng.Uint32())
	}
	return buf[:16], buf[16:116]
}

func benchFile(tb testing.TB, opts sequencefiles.WriterOptions, records int) []byte {
	tb.Helper()
	var out bytes.Buffer
	opts.SyncSeed = "bench"
	w, err := sequencefiles.NewWriter(&out, opts)
	expect.NoError(tb, err)
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	for i := range records {
		key, value := benchRecord(rng, i, buf)
		expect.NoError(tb, w.Append(key, value))
	}
	expect.NoError(tb, w.Close())
	return out.Bytes()
}

// scanner is what both readers have in common.
type scanner interface {
	Scan() bool
	Key() []byte
	Value() []byte
	Err() error
}

func scanAll(b *testing.B, s scanner, want int) {
	n, size := 0, 0
	for s.Scan() {
		n++
		size += len(s.Key()) + len(s.Value())
	}
	if s.Err() != nil || n != want || size < 116*n {
		b.Fatalf("%d records of %d bytes, error %v", n, size, s.Err())
	}
}

// BenchmarkRead reads files of each compression with this package ("ours") and with github.com/colinmarc/sequencefile
// ("peer"), which lacks some codecs.
func BenchmarkRead(b *testing.B) {
	for _, opts := range modes() {
		b.Run(modeName(opts), func(b *testing.B) {
			file := benchFile(b, opts, benchRecords)
			b.Run("ours", func(b *testing.B) { benchRead(b, file, ourReader) })
			if peerReads(opts.Codec) {
				b.Run("peer", func(b *testing.B) { benchRead(b, file, peerReader) })
			}
		})
	}
}

func benchRead(b *testing.B, file []byte, open func(testing.TB, []byte) scanner) {
	b.ReportAllocs()
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		s := open(b, file)
		scanAll(b, s, benchRecords)
		if r, ok := s.(*Reader); ok {
			r.Close()
		}
	}
	perRecord := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / benchRecords
	b.ReportMetric(perRecord, "ns/record")
	b.ReportMetric(1e3/perRecord, "Mrecords/s")
}

func ourReader(tb testing.TB, file []byte) scanner {
	r, err := NewReader(bytes.NewReader(file), "bench")
	expect.NoError(tb, err)
	return r
}

type unwrapped struct{ *peer.Reader }

func (u unwrapped) Key() []byte   { return peer.BytesWritable(u.Reader.Key()) }
func (u unwrapped) Value() []byte { return peer.BytesWritable(u.Reader.Value()) }

func peerReader(tb testing.TB, file []byte) scanner {
	r := peer.NewReader(bytes.NewReader(file))
	expect.NoError(tb, r.ReadHeader())
	return unwrapped{r}
}
