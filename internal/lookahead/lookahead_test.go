package lookahead

import (
	"bytes"
	"errors"
	"io"
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
	if in.Fill(len(data)) || !bytes.Equal(in.Bytes(), data[2*bufferSize-3:]) {
		t.Errorf("%d bytes follow", in.Len())
	}
	in.Skip(in.Len())
	if in.Fill(1) || in.Err() != io.EOF || in.Len() != 0 {
		t.Errorf("%d bytes behind the end, %v", in.Len(), in.Err())
	}
	closed := errors.New("closed")
	in.Close(closed)
	if in.Fill(1) || in.Err() != closed || in.Offset() != 100+int64(len(data)) {
		t.Errorf("after Close: %v at %d", in.Err(), in.Offset())
	}
}
