package batchkeys

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"
)

// FuzzKeys holds the parser of JSON keys against encoding/json: what it accepts, encoding/json reads as the same keys.
func FuzzKeys(f *testing.F) {
	for _, s := range []string{`{"keys":["a",{"base64":"AP8="},"\u00e9\ud83d\ude00\n"]}`, ` { "keys" : [ ] } `, `{"keys":["\ud800"]}`, `{"keys":[{"base64":"AA"}]}`, `{"keys":[""`, `{"\\u`, `{"keys":[1,-20,0, 98765432109876543210]}`, `{"keys":[-0,1.0,1e3,true,null]}`} {
		f.Add([]byte(s), true)
	}
	f.Add([]byte("\x00\x00\x00\x01a\x00\x00\x00\x00"), false)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		if !isJSON {
			keys, err := Parse(slices.Clone(data), 100)
			var again []byte
			for _, k := range keys {
				again = append(binary.BigEndian.AppendUint32(again, uint32(len(k))), k...)
			}
			if err == nil && !bytes.Equal(again, data) {
				t.Errorf("%q is read as %q", data, keys)
			}
			return
		}
		keys, err := ParseJSON(slices.Clone(data), 100)
		var want struct{ Keys []any }
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		strict.UseNumber()
		if wrong := strict.Decode(&want); err == nil && (wrong != nil || len(want.Keys) != len(keys)) {
			t.Fatalf("%q is accepted, as %q; encoding/json: %v", data, keys, wrong)
		}
		for i, k := range keys {
			var plain string
			switch want := want.Keys[i].(type) {
			case string:
				plain = want
			case json.Number:
				plain = want.String()
			case map[string]any:
				b, _ := base64.StdEncoding.DecodeString(want["base64"].(string))
				plain = string(b)
			}
			if string(k) != plain {
				t.Errorf("%q: key %d is %q, want %q", data, i, k, plain)
			}
		}
	})
}
