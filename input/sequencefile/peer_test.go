package sequencefile

import (
	"bytes"
	"math/rand"
	"testing"

	peer "github.com/colinmarc/sequencefile"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

// These tests ask github.com/colinmarc/sequencefile for a second opinion, on what it can read and write.

// peerReads tells whether the other library reads a codec.
func peerReads(codec string) bool { return codec != DeflateCodec && codec != Lz4Codec }

var (
	peerCompression = map[Compression]peer.Compression{None: peer.NoCompression, Record: peer.RecordCompression, Block: peer.BlockCompression}
	peerCodec       = map[string]peer.CompressionCodec{DefaultCodec: peer.ZlibCompression, GzipCodec: peer.GzipCompression,
		SnappyCodec: peer.SnappyCompression, ZStandardCodec: peer.ZstdCompression, BZip2Codec: peer.Bzip2Compression}
)

// peerRecords are lengths of keys and values around those where something changes.
func peerRecords() []record {
	rng := rand.New(rand.NewSource(1))
	var records []record
	for _, n := range []int{0, 1, 10, 100, 120, 127, 128, 129, 255, 256, 1000, 70_000, 300_000} {
		value := make([]byte, n)
		rng.Read(value[:n/2])
		records = append(records, record{value[:min(n, 300)], value})
	}
	return records
}

func TestPeerReadsOurs(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		if !peerReads(opts.Codec) {
			return
		}
		for _, class := range []string{BytesWritable, Text} {
			records := peerRecords()
			if class == Text {
				records = records[3:] // it takes serialised keys of less than 4 bytes for damage
			}
			opts.KeyClass, opts.ValueClass, opts.BlockSize = class, class, 100_000
			opts.Metadata = map[string]string{"a": "b"}
			r := peer.NewReader(bytes.NewReader(writeFile(t, opts, records)))
			expect.NoError(t, r.ReadHeader())
			if r.Header.KeyClassName != class || r.Header.Metadata["a"] != "b" {
				t.Fatalf("header %+v", r.Header)
			}
			unwrap := peer.BytesWritable
			if class == Text {
				unwrap = func(b []byte) []byte { return []byte(peer.Text(b)) }
			}
			var got []record
			for r.Scan() {
				got = append(got, record{bytes.Clone(unwrap(r.Key())), bytes.Clone(unwrap(r.Value()))})
			}
			if diff := sameRecords(got, records); diff != "" || r.Err() != nil {
				t.Fatalf("%s: %s, error %v", class, diff, r.Err())
			}
		}
	})
}

func TestWeReadPeers(t *testing.T) {
	eachMode(t, func(t *testing.T, opts sequencefiles.WriterOptions) {
		codec := peerCodec[opts.Codec]
		if opts.Compression != sequencefiles.None && (codec == 0 || codec == peer.ZlibCompression) {
			return // which it reads, but does not write
		}
		var out bytes.Buffer
		w, err := peer.NewWriter(&peer.WriterConfig{Writer: &out, KeyClass: BytesWritable, ValueClass: BytesWritable,
			Compression: peerCompression[Compression(opts.Compression)], CompressionCodec: codec, BlockSize: 100_000,
			Rand: rand.New(rand.NewSource(1)), Metadata: map[string]string{"a": "b"}})
		expect.NoError(t, err)
		for _, r := range peerRecords() {
			expect.NoError(t, w.Append(r.key, r.value))
		}
		expect.NoError(t, w.Close())
		got, err := readFile(out.Bytes())
		if diff := sameRecords(got, peerRecords()); diff != "" || err != nil {
			t.Fatalf("%s, error %v", diff, err)
		}
	})
}
