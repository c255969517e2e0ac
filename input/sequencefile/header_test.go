package sequencefile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/sequencefiles"
)

const (
	nameBytes   = "\x22org.apache.hadoop.io.BytesWritable"
	nameText    = "\x19org.apache.hadoop.io.Text"
	nameDefault = "\x2aorg.apache.hadoop.io.compress.DefaultCodec"
	nameSnappy  = "\x29org.apache.hadoop.io.compress.SnappyCodec"
	goldenSync  = "0123456789abcdef"
)

// TestGoldenHeaders reads headers of each version, written out byte by byte.
func TestGoldenHeaders(t *testing.T) {
	long := strings.Repeat("v", 300) // its length takes three bytes
	tests := []struct {
		name, file string
		want       Header
	}{
		{"4, none", "SEQ\x04" + nameText + nameBytes + "\x00\x00" + goldenSync,
			Header{Version: 4, KeyClass: Text, ValueClass: BytesWritable}},
		{"4, RECORD: the codec is not named", "SEQ\x04" + nameText + nameText + "\x01\x00" + goldenSync,
			Header{Version: 4, KeyClass: Text, ValueClass: Text, Compression: Record, Codec: DefaultCodec}},
		{"4, BLOCK", "SEQ\x04" + nameText + nameText + "\x01\x01" + goldenSync,
			Header{Version: 4, KeyClass: Text, ValueClass: Text, Compression: Block, Codec: DefaultCodec}},
		{"5, none", "SEQ\x05" + nameText + nameText + "\x00\x00" + goldenSync,
			Header{Version: 5, KeyClass: Text, ValueClass: Text}},
		{"5, RECORD", "SEQ\x05" + nameText + nameText + "\x01\x00" + nameDefault + goldenSync,
			Header{Version: 5, KeyClass: Text, ValueClass: Text, Compression: Record, Codec: DefaultCodec}},
		{"5, BLOCK", "SEQ\x05\x05a.Key\x07a.Value\x01\x01" + nameSnappy + goldenSync,
			Header{Version: 5, KeyClass: "a.Key", ValueClass: "a.Value", Compression: Block, Codec: SnappyCodec}},
		{"6, none", "SEQ\x06" + nameBytes + nameBytes + "\x00\x00\x00\x00\x00\x00" + goldenSync,
			Header{Version: 6, KeyClass: BytesWritable, ValueClass: BytesWritable}},
		{"6, BLOCK, metadata", "SEQ\x06" + nameBytes + nameText + "\x01\x01" + nameSnappy +
			"\x00\x00\x00\x02" + "\x01a\x8e\x01\x2c" + long + "\x01b\x00" + goldenSync,
			Header{Version: 6, KeyClass: BytesWritable, ValueClass: Text, Compression: Block, Codec: SnappyCodec,
				Metadata: map[string]string{"a": long, "b": ""}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, err := NewReader(strings.NewReader(test.file), "test")
			expect.NoError(t, err)
			defer r.Close()
			copy(test.want.Sync[:], goldenSync)
			if got, want := fmt.Sprintf("%+v", r.Header()), fmt.Sprintf("%+v", test.want); got != want {
				t.Fatalf("header\n%s, want\n%s", got, want)
			}
			if r.Scan() || r.Err() != nil {
				t.Fatalf("a record, or %v", r.Err())
			}
			if test.want.Version == versionMetadata {
				opts := sequencefiles.WriterOptions{KeyClass: test.want.KeyClass, ValueClass: test.want.ValueClass,
					Compression: sequencefiles.Compression(test.want.Compression), Codec: test.want.Codec, Metadata: test.want.Metadata}
				got := writeFile(t, opts, nil)
				copy(got[len(got)-syncSize:], goldenSync)
				if string(got) != test.file {
					t.Fatalf("written as\n%s, want\n%s", hex.Dump(got), hex.Dump([]byte(test.file)))
				}
			}
			for n := range test.file {
				_, err := NewReader(strings.NewReader(test.file[:n]), "test")
				wantCorrupt(t, err)
			}
		})
	}
}

// TestOldVersions puts headers of versions 4 and 5 in front of records: only the header differs.
func TestOldVersions(t *testing.T) {
	for _, c := range []Compression{None, Record, Block} {
		opts := sequencefiles.WriterOptions{KeyClass: Text, ValueClass: Text, Compression: sequencefiles.Compression(c), SyncSeed: "test"}
		file := writeFile(t, opts, smallRecords())
		r, err := NewReader(bytes.NewReader(file), "test")
		expect.NoError(t, err)
		body, sync := file[r.in.Offset():], r.header.Sync[:]
		r.Close()
		flags := []string{None: "\x00\x00", Record: "\x01\x00", Block: "\x01\x01"}[c]
		codec := nameDefault
		if c == None {
			codec = ""
		}
		for _, header := range []string{"SEQ\x04" + nameText + nameText + flags, "SEQ\x05" + nameText + nameText + flags + codec} {
			old := slices.Concat([]byte(header), sync, body)
			got, err := readFile(old)
			if diff := sameRecords(got, smallRecords()); diff != "" || err != nil {
				t.Errorf("%v, version %d: %s, error %v", c, header[3], diff, err)
			}
		}
	}
}

// TestBadHeaders are headers that are not to be believed.
func TestBadHeaders(t *testing.T) {
	names := nameText + nameText
	tests := []struct {
		name, file, reason string
		offset             int64
	}{
		{"nothing", "", "the file ends in the header's magic", 0},
		{"something else", "PAR1 and more", `begins with "PAR", not "SEQ"`, 0},
		{"version 3", "SEQ\x03" + names, "version 3 is not supported", 0},
		{"version 7", "SEQ\x07" + names, "version 7 is not supported", 0},
		{"class name of negative length", "SEQ\x06\xff" + names, "bad length of the key class", 4},
		{"class name of 2 GiB", "SEQ\x06\x8c\x7f\xff\xff\xff" + names, "makes the header larger than", 9},
		{"class name of 15 MiB", "SEQ\x06\x8d\xf0\x00\x00" + names, "the file ends in the header's key class", 8},
		{"end in a length", "SEQ\x06\x8c\x7f", "the file ends in the header's key class", 4},
		{"flags", "SEQ\x06" + names + "\x00\x01", "impossible compression flags 0, 1", 58},
		{"more flags", "SEQ\x06" + names + "\x02\x00", "impossible compression flags 2, 0", 58},
		{"codec", "SEQ\x06" + names + "\x01\x00\x07LzoLike" + "\x00\x00\x00\x00" + goldenSync, `codec "LzoLike" is not supported`, 66},
		{"metadata, many", "SEQ\x06" + names + "\x00\x00\x7f\xff\xff\xff", "2147483647 pairs of metadata", 62},
		{"metadata, negative", "SEQ\x06" + names + "\x00\x00\xff\xff\xff\xff", "4294967295 pairs of metadata", 62},
		{"metadata, missing", "SEQ\x06" + names + "\x00\x00\x00\x00\xff\xff\x01a", "the file ends in the header's metadata", 64},
		{"metadata, negative length", "SEQ\x06" + names + "\x00\x00\x00\x00\x00\x01\x90\x01a", "bad length of the metadata", 62},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := allocated()
			_, err := NewReader(strings.NewReader(test.file), "test")
			if n := allocated() - before; n > 1<<20 {
				t.Errorf("%d bytes allocated", n)
			}
			c := wantCorrupt(t, err)
			if !strings.Contains(c.Reason, test.reason) || c.Offset != test.offset {
				t.Errorf("%v, want %q at %d", c, test.reason, test.offset)
			}
		})
	}
}

func TestVInt(t *testing.T) {
	tests := []struct {
		value   int
		encoded string
	}{
		{0, "\x00"}, {1, "\x01"}, {127, "\x7f"}, {128, "\x8f\x80"}, {255, "\x8f\xff"}, {256, "\x8e\x01\x00"}, {65535, "\x8e\xff\xff"},
		{65536, "\x8d\x01\x00\x00"}, {1<<24 - 1, "\x8d\xff\xff\xff"}, {1 << 24, "\x8c\x01\x00\x00\x00"}, {1<<31 - 1, "\x8c\x7f\xff\xff\xff"},
	}
	for _, test := range tests {
		if got := sequencefiles.AppendLength(nil, test.value); string(got) != test.encoded {
			t.Errorf("%d is written as %x, want %x", test.value, got, test.encoded)
		}
		for n := range len(test.encoded) {
			if _, size := decodeLength([]byte(test.encoded[:n])); size != 0 {
				t.Errorf("%d bytes of %x took %d", n, test.encoded, size)
			}
		}
		if v, n := decodeLength([]byte(test.encoded + "more")); v != test.value || n != len(test.encoded) {
			t.Errorf("%x is read as %d from %d bytes, want %d", test.encoded, v, n, test.value)
		}
	}
	// Invalid lengths: negative numbers of every size, and those that do not fit into an int32.
	for _, bad := range []string{"\xff", "\x90", "\x87\x01", "\x80\xff\xff\xff\xff\xff\xff\xff\xff", "\x8c\x80\x00\x00\x00",
		"\x8b\x01\x00\x00\x00\x00", "\x88\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if v, n := decodeLength([]byte(bad)); n != -1 {
			t.Errorf("%x is read as %d from %d bytes", bad, v, n)
		}
	}
}
