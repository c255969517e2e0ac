package lookahead

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// The buffer grows with what is asked for, and offsets are those of the file.
func TestReader(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 3*bufferSize/16)
	var in Reader
	in.Reset(iotest.HalfReader(bytes.NewReader(data)), 100)
	if !in.Fill(2*bufferSize) || !bytes.Equal(in.Bytes()[:2*bufferSize], data[:2*bufferSize]) {
		t.Fatal("what is available is not the file")
	}
	in.Skip(2*bufferSize - 3)
	if in.Offset() != 100+2*bufferSize-3 || in.ReadTo() < in.Offset() {
		t.Errorf("at %d of %d", in.Offset(), in.ReadTo())
	}
	rest, err := io.ReadAll(&in)
	if err != nil || !bytes.Equal(rest, data[2*bufferSize-3:]) {
		t.Errorf("%d bytes follow, %v", len(rest), err)
	}
	if in.Fill(1) || in.Err() != io.EOF || in.Len() != 0 {
		t.Errorf("%d bytes behind the end, %v", in.Len(), in.Err())
	}
	closed := errors.New("closed")
	in.Close(closed)
	if in.Fill(1) || in.Err() != closed || in.Offset() != 100+int64(len(data)) {
		t.Errorf("after Close: %v at %d", in.Err(), in.Offset())
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct {
		before int
		found  bool
	}{{0, true}, {1, true}, {bufferSize - 3, true}, {bufferSize, true}, {5 * bufferSize, true}, {20 * bufferSize, false}} {
		var in Reader
		in.Reset(strings.NewReader(strings.Repeat("x", test.before)+"marker and more"), 0)
		if in.Find([]byte("marker"), 10*bufferSize) != test.found || test.found && in.Offset() != int64(test.before) {
			t.Errorf("a marker at %d: at %d, error %v", test.before, in.Offset(), in.Err())
		}
	}
	broken := errors.New("broken")
	var in Reader
	in.Reset(io.MultiReader(strings.NewReader("mark"), iotest.ErrReader(broken)), 0)
	if in.Find([]byte("marker"), 1<<20) || in.Err() != broken {
		t.Errorf("error %v", in.Err())
	}
}
