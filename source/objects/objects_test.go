package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"sequins/source"
	"sequins/test/expect"
)

func TestExtent(t *testing.T) {
	for _, test := range []struct {
		whole      bool
		said       string
		length     int64
		from, size int64
		ok         bool
	}{
		{true, "", 5, 0, 5, true},
		{true, "", 0, 0, 0, true},
		{true, "", -1, 0, 0, false},
		{false, "", 5, 0, 0, false},
		{false, "bytes 0-4/5", 5, 0, 5, true},
		{false, "bytes 3-4/5", 2, 3, 5, true},
		{true, "bytes 3-4/5", 2, 3, 5, true},
		{false, "bytes 0-4/*", 5, 0, 0, false},
		{false, "bytes */5", 5, 0, 0, false},
		{false, "bytes 7-8/5", 5, 0, 0, false},
		{false, "bytes -1-4/5", 5, 0, 0, false},
		{false, "bytes 0-4/-5", 5, 0, 0, false},
		{false, "items 0-4/5", 5, 0, 0, false},
		{false, "bytes 0-4/99999999999999999999", 5, 0, 0, false},
	} {
		from, size, err := Extent(test.whole, test.said, &test.length)
		if from != test.from || size != test.size || (err == nil) != test.ok {
			t.Errorf("%+v: %d, %d, %v", test, from, size, err)
		}
	}
}

// weak is a store behind a proxy that makes the ids of answers weak, also those of listings if listed is set.
type weak struct {
	inMemory
	listed bool
}

func (s weak) List(ctx context.Context, prefix string, deep bool, token string) (Page, error) {
	p, err := s.inMemory.List(ctx, prefix, deep, token)
	for i := range p.Objects {
		p.Objects[i].ID = `"` + p.Objects[i].ID + `"`
		if s.listed {
			p.Objects[i].ID = "W/" + p.Objects[i].ID
		}
	}
	return p, err
}

func (s weak) Get(ctx context.Context, key, id string, offset, n int64) (*Body, error) {
	if strings.HasPrefix(id, "W/") {
		return nil, source.ErrChanged // a condition with a weak id is never true
	}
	body, err := s.inMemory.Get(ctx, key, strings.Trim(id, `"`), offset, n)
	if err == nil {
		body.ID = `W/"` + body.ID + `"`
	}
	return body, err
}

// TestWeakETags: a weak ETag identifies an object like a strong one, and is no condition of a request.
func TestWeakETags(t *testing.T) {
	data := []byte(strings.Repeat("0123456789abcdef", 1<<18)) // several requests
	for _, listed := range []bool{false, true} {
		s := New(weak{inMemory{"db/1/file": data}, listed}, Options{}, "")
		c, err := s.Contents(t.Context(), "db", "1")
		if err != nil || len(c.Files) != 1 {
			t.Fatal(c, err)
		}
		f, err := s.Open(t.Context(), "db", "1", c.Files[0], source.ReadOptions{})
		expect.NoError(t, err)
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
			t.Errorf("listed weak %t: %d bytes, %v", listed, len(got), err)
		}
		f.Close()
		other := c.Files[0]
		other.Mark = strings.Replace(other.Mark, `"4`, `"5`, 1)
		if f, err := s.Open(t.Context(), "db", "1", other, source.ReadOptions{}); !errors.Is(err, source.ErrChanged) {
			t.Errorf("listed weak %t: another object is %v", listed, err)
			f.Close()
		}
	}
}

// nameless is a store that lists objects without ids.
type nameless struct{ inMemory }

func (s nameless) List(ctx context.Context, prefix string, deep bool, token string) (Page, error) {
	p, err := s.inMemory.List(ctx, prefix, deep, token)
	for i := range p.Objects {
		p.Objects[i].ID = ""
	}
	return p, err
}

// TestObjectsWithoutID: what cannot be told from another object of its name and size is not read.
func TestObjectsWithoutID(t *testing.T) {
	s := New(nameless{inMemory{"db/1/file": []byte("x")}}, Options{}, "")
	if c, err := s.Contents(t.Context(), "db", "1"); err == nil || !strings.Contains(err.Error(), "without what identifies it") {
		t.Errorf("%+v, %v", c, err)
	}
}
