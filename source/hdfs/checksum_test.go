package hdfs

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// answerOf returns a datanode's answer with a status and a checksum of n bytes.
func answerOf(status uint64, n int) []byte {
	sum := protowire.AppendBytes(protowire.AppendTag(nil, fieldBlockChecksum, protowire.BytesType), make([]byte, n))
	b := protowire.AppendVarint(protowire.AppendTag(nil, fieldOpStatus, protowire.VarintType), status)
	return protowire.AppendBytes(protowire.AppendTag(b, fieldChecksum, protowire.BytesType), sum)
}

// Only an answer with an MD5 counts: the library takes any other for a checksum of no bytes.
func TestAnswersWithoutChecksum(t *testing.T) {
	good := answerOf(0, md5Size)
	refusal := protowire.AppendVarint(protowire.AppendTag(nil, fieldOpStatus, protowire.VarintType), 0)
	for name, answer := range map[string][]byte{
		"nothing": nil, "an error": answerOf(1, md5Size), "no checksum": refusal, "an empty checksum": answerOf(0, 0),
		"a CRC": answerOf(0, 4), "truncated": good[:len(good)-1], "noise": []byte("HTTP/1.1 400 Bad Request"),
	} {
		b := new(blockSums)
		if err := b.add(answer); err == nil || b.n != 0 {
			t.Errorf("%s is taken for a checksum", name)
		}
	}
	b := new(blockSums)
	if err := b.add(good); err != nil || b.n != 1 {
		t.Errorf("%v, %d", err, b.n)
	}
}

func FuzzChecksumAnswer(f *testing.F) {
	f.Add(answerOf(0, md5Size))
	f.Fuzz(func(t *testing.T, answer []byte) {
		b := new(blockSums)
		if err := b.add(answer); (err == nil) != (b.n == 1) {
			t.Errorf("%v, %d", err, b.n)
		}
	})
}
