//go:build integration

package cluster

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"sequins/test/checker"
	"sequins/test/process"
)

// rangePace is the pause of a client between two ordered reads, because an answer may have all keys.
const rangePace = 20 * time.Millisecond

// ranges reads ranges at random, each page from any of the members, and counts. It waits between two pages.
func (o *roamer) ranges(between time.Duration) {
	for !o.r.stop.Load() {
		b := o.r.c.data.anyRange()
		if rand.IntN(3) == 0 {
			b.Limit, b.KeysOnly = 0, false
			o.send(countRequest(b))
		} else {
			o.pages(b, between)
		}
		time.Sleep(rangePace)
	}
}

// anyRange returns bounds at random; the fewest contain all keys.
func (d dataset) anyRange() checker.Bounds {
	b := checker.Bounds{Limit: 1 + rand.IntN(d.keys/8), KeysOnly: rand.IntN(4) == 0}
	switch n := rand.IntN(20); {
	case n == 0:
	case n == 1:
		b.Limit = 0
	case n < 10:
		from := rand.IntN(d.keys)
		b.From, b.Until = d.key(from), d.key(from+rand.IntN(d.keys/4))
	default:
		key := d.key(rand.IntN(d.keys))
		b.Prefix = key[:len(key)-2]
	}
	return b
}

// pages reads a range page by page, each from another member, to its end, or until its version is gone.
func (o *roamer) pages(b checker.Bounds, between time.Duration) {
	cursor, version := "", ""
	for begun := time.Now(); !o.r.stop.Load(); {
		q := rangeRequest(b, cursor, rand.IntN(2) == 0)
		q.read.Exact, q.read.AtLeast = version, version
		read := o.send(q)
		switch {
		case read.Code == 200 && read.Err == "" && read.More && len(read.Keys) > 0:
			cursor, version, b.After = read.Cursor, read.Version, read.Keys[len(read.Keys)-1]
		case read.Code == 200, read.Code == 410, time.Since(begun) > rangePatience:
			return
		}
		time.Sleep(between)
	}
}

// rangePatience is how long a client continues a range that gets errors. The end of a recording does not wait for it.
const rangePatience = 20 * time.Second

// parameters returns those of bounds.
func parameters(b checker.Bounds) url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"prefix": b.Prefix, "start": b.From, "end": b.Until} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if b.Limit > 0 {
		v.Set("limit", fmt.Sprint(b.Limit))
	}
	if b.KeysOnly {
		v.Set("keys_only", "true")
	}
	return v
}

func rangeRequest(b checker.Bounds, cursor string, inBytes bool) request {
	v := parameters(b)
	if cursor != "" {
		v.Set("after", cursor)
	}
	if len(v) == 0 {
		v.Set("prefix", "") // without parameters it would be the status page
	}
	q := request{read: checker.Read{Op: checker.Range, Bounds: b}, method: "GET", target: "/" + db + "?" + v.Encode(), take: takeRecordLines}
	if inBytes {
		q.header, q.take = "Accept: application/octet-stream\r\n", takeRecordBytes
	}
	return q
}

func countRequest(b checker.Bounds) request {
	v := parameters(b)
	v.Set("count", "true")
	return request{read: checker.Read{Op: checker.Count, Bounds: b}, method: "GET", target: "/" + db + "?" + v.Encode(), take: takeCount}
}

func takeCount(a *process.Response, read *checker.Read) error {
	var answer struct {
		Version string `json:"version"`
		Count   *int   `json:"count"`
	}
	if err := decodeStrictly(a.Body, &answer); err != nil {
		return err
	}
	if answer.Count == nil {
		return errors.New("no count")
	}
	read.Inside, read.Total = answer.Version, *answer.Count
	return nil
}

// takeRecordLines takes records as lines of JSON.
func takeRecordLines(a *process.Response, read *checker.Read) error {
	lines := strings.Split(strings.TrimSuffix(string(a.Body), "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		var record struct {
			Key, Value *string
		}
		if err := decodeStrictly([]byte(line), &record); err != nil {
			return err
		}
		if record.Key == nil {
			return fmt.Errorf("no key in %s", line)
		}
		read.Keys = append(read.Keys, *record.Key)
		if !read.KeysOnly {
			read.Values = append(read.Values, record.Value)
		}
	}
	var end struct {
		Version string          `json:"version"`
		Records *int            `json:"records"`
		Cursor  json.RawMessage `json:"cursor"`
	}
	if err := decodeStrictly([]byte(lines[len(lines)-1]), &end); err != nil {
		return err
	}
	if end.Records == nil || *end.Records != len(read.Keys) {
		return fmt.Errorf("%d records before %s", len(read.Keys), lines[len(lines)-1])
	}
	read.Inside, read.More = end.Version, string(end.Cursor) != "null"
	if !read.More {
		return nil
	}
	return json.Unmarshal(end.Cursor, &read.Cursor)
}

// takeRecordBytes takes records in bytes.
func takeRecordBytes(a *process.Response, read *checker.Read) error {
	rest := a.Body
	next := func() (s string, end bool, err error) {
		if len(rest) < 4 {
			return "", false, errors.New("it breaks off")
		}
		n := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; n == 1<<32-1 {
			return "", true, nil
		}
		if uint64(n) > uint64(len(rest)) {
			return "", false, errors.New("it breaks off in a record")
		}
		s, rest = string(rest[:n]), rest[n:]
		return s, false, nil
	}
	for {
		key, end, err := next()
		if err != nil {
			return err
		}
		if end {
			read.Cursor, _, err = next()
			read.More = read.Cursor != ""
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("%d bytes follow", len(rest))
			}
			return err
		}
		value, _, err := next()
		if err != nil {
			return err
		}
		read.Keys = append(read.Keys, key)
		if !read.KeysOnly {
			read.Values = append(read.Values, &value)
		}
	}
}
