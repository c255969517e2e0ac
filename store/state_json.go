package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The file of a State is one line of JSON,
//
//	{"format_version":1,"crc32c":"0123abcd","state":{…}}
//
// where crc32c is the CRC-32C of the bytes of the object behind "state", in 8 hexadecimal digits.
const (
	stateVersion = 1
	maxState     = 1 << 20 // bytes
)

const (
	// MaxFormer, MaxVerdicts and MaxFailures are the numbers of these that a State can have.
	MaxFormer, MaxVerdicts, MaxFailures = 100, 1000, 1000
	// MaxReason is the number of bytes of a reason that a State keeps.
	MaxReason = 1000
)

type stateEnvelope struct {
	FormatVersion int             `json:"format_version"`
	CRC           string          `json:"crc32c"`
	State         json.RawMessage `json:"state"`
}

// stateMembers are the members of a State. Those that are zero are left out.
var stateMembers = []string{"served", "totals", "former", "verdicts", "failures", "pin", "marked", "absent"}

// encodeState returns the content of the file.
func encodeState(s State) ([]byte, error) {
	s = s.normal()
	if err := s.validate(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	data := sealState(withMembers(body, s.unknown))
	if len(data) > maxState {
		return nil, fmt.Errorf("%d bytes: %w", len(data), ErrTooLarge)
	}
	return data, nil
}

// normal returns s with short reasons, and times in UTC.
func (s State) normal() State {
	s.Absent, s.Verdicts, s.Failures = s.Absent.UTC(), slices.Clone(s.Verdicts), slices.Clone(s.Failures)
	for i := range s.Verdicts {
		s.Verdicts[i].Reason = short(s.Verdicts[i].Reason)
	}
	for i := range s.Failures {
		f := &s.Failures[i]
		f.Reason, f.Next = short(f.Reason), f.Next.UTC()
	}
	return s
}

func sealState(body []byte) []byte {
	return fmt.Appendf(nil, "{\"format_version\":%d,\"crc32c\":\"%s\",\"state\":%s}\n", stateVersion, checksum(body), body)
}

// withMembers adds members to an object.
func withMembers(object []byte, members []member) []byte {
	for _, m := range members {
		object = object[:len(object)-1]
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(fmt.Appendf(object, "%s:", quoted(m.name)), append(m.value, '}')...)
	}
	return object
}

func quoted(s string) []byte {
	text, _ := json.Marshal(s) // cannot fail
	return text
}

// short cuts a text to MaxReason bytes.
func short(s string) string {
	for len(s) > MaxReason {
		_, size := utf8.DecodeLastRuneInString(s[:MaxReason+1])
		s = s[:MaxReason+1-size]
	}
	return s
}

// decodeState reads the content of the file; path is for its errors.
func decodeState(data []byte, path string) (State, error) {
	corrupt := func(reason string, err error) (State, error) { return State{}, corruptFile(path, reason, err) }
	var env stateEnvelope
	if err := json.Unmarshal(data, &env); err != nil {
		return corrupt("not a state", err)
	}
	if env.FormatVersion != stateVersion {
		return corrupt(fmt.Sprintf("its format version is %d, and %d can be read", env.FormatVersion, stateVersion), nil)
	}
	if crc := checksum(env.State); crc != env.CRC {
		return corrupt(fmt.Sprintf("checksum is %s, should be %q", crc, env.CRC), nil)
	}
	var s State
	if err := json.Unmarshal(env.State, &s); err != nil {
		return corrupt("not a state", err)
	}
	s = s.normal()
	if err := s.validate(); err != nil {
		return corrupt("invalid", err)
	}
	unknown, err := unknownMembers(env.State)
	if err != nil {
		return corrupt("not a state", err)
	}
	s.unknown = unknown
	return s, nil
}

// unknownMembers returns the members of an object that a State has not.
func unknownMembers(object []byte) (unknown []member, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		known := func(m string) bool { return strings.EqualFold(m, name) } // as encoding/json does
		if !slices.ContainsFunc(stateMembers, known) {
			var compact bytes.Buffer
			if err := json.Compact(&compact, all[name]); err != nil {
				return nil, err
			}
			unknown = append(unknown, member{name, compact.Bytes()})
		}
	}
	return unknown, nil
}
