//go:build integration

package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"

	"sequins/test/checker"
	"sequins/test/process"
)

// largestBatch is the most keys that a client asks for at a time.
const largestBatch = 30

// anyKeys returns keys at random. Some are in no version, and some repeat.
func (d dataset) anyKeys() []string {
	keys := make([]string, 1+rand.IntN(largestBatch))
	for i := range keys {
		keys[i] = d.key(rand.IntN(d.keys + d.keys/10))
		if i > 0 && rand.IntN(20) == 0 {
			keys[i] = keys[rand.IntN(i)]
		}
	}
	return keys
}

// anyBatch requests keys at random in one of the formats.
func (d dataset) anyBatch() request {
	q := request{read: checker.Read{Op: checker.Batch, Keys: d.anyKeys()}, method: "POST", target: "/" + db}
	formats[rand.IntN(len(formats))](&q)
	return q
}

// formats are those of batches. Each completes a request for q.read.Keys.
var formats = []func(q *request){
	func(q *request) {
		q.header, q.body, q.take = "Content-Type: application/json\r\n", jsonKeys(q.read.Keys), takeJSON
	},
	func(q *request) {
		q.header, q.body, q.take = "Accept: application/x-ndjson\r\n", jsonKeys(q.read.Keys), takeLines
	},
	func(q *request) {
		q.header = "Content-Type: application/octet-stream\r\nAccept: application/octet-stream\r\n"
		for _, key := range q.read.Keys {
			q.body = append(binary.BigEndian.AppendUint32(q.body, uint32(len(key))), key...)
		}
		q.take = takeBinary
	},
	func(q *request) {
		var params []string
		for _, key := range q.read.Keys {
			params = append(params, "key="+url.QueryEscape(key))
		}
		q.method, q.target, q.take = "GET", q.target+"?"+strings.Join(params, "&"), takeJSON
	},
}

// jsonKeys is the body of a request, with some keys as strings and some in base64.
func jsonKeys(keys []string) []byte {
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = key
		if i%4 == 3 {
			list[i] = map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(key))}
		}
	}
	body, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		panic(err)
	}
	return body
}

// jsonValue is one value of an answer.
type jsonValue struct {
	Value  *string `json:"value"`
	Base64 []byte  `json:"base64"`
}

// add appends values; nil stands for an absent one.
func add(read *checker.Read, values ...*jsonValue) {
	for _, v := range values {
		switch {
		case v == nil:
			read.Values = append(read.Values, nil)
		case v.Value != nil:
			read.Values = append(read.Values, v.Value)
		default:
			text := string(v.Base64)
			read.Values = append(read.Values, &text)
		}
	}
}

// decodeStrictly decodes one JSON value and rejects unknown fields.
func decodeStrictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than one value: %w", err)
	}
	return nil
}

func takeJSON(a *process.Response, read *checker.Read) error {
	var answer struct {
		Version string       `json:"version"`
		Values  []*jsonValue `json:"values"`
	}
	if err := decodeStrictly(a.Body, &answer); err != nil {
		return err
	}
	read.Inside = answer.Version
	add(read, answer.Values...)
	return nil
}

func takeLines(a *process.Response, read *checker.Read) error {
	lines := strings.Split(string(a.Body), "\n")
	if lines[len(lines)-1] != "" {
		return errors.New("the last line has no end")
	}
	var head struct {
		Version string `json:"version"`
	}
	if err := decodeStrictly([]byte(lines[0]), &head); err != nil {
		return err
	}
	read.Inside = head.Version
	for _, line := range lines[1 : len(lines)-1] {
		var v *jsonValue
		if err := decodeStrictly([]byte(line), &v); err != nil {
			return err
		}
		add(read, v)
	}
	return nil
}

func takeBinary(a *process.Response, read *checker.Read) error {
	for b := a.Body; len(b) > 0; {
		if len(b) < 4 {
			return fmt.Errorf("%d bytes follow the values", len(b))
		}
		n := binary.BigEndian.Uint32(b)
		if b = b[4:]; n == 1<<32-1 {
			read.Values = append(read.Values, nil)
			continue
		}
		if uint64(n) > uint64(len(b)) {
			return fmt.Errorf("a value of %d bytes, of which there are %d", n, len(b))
		}
		value := string(b[:n])
		read.Values, b = append(read.Values, &value), b[n:]
	}
	return nil
}
