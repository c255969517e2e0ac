package reads_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/wire"
	"sequins/proxy"
	"sequins/reads"
)

// byLetter are the zones of nodes whose names begin with their zone.
func byLetter(own string) proxy.Zones {
	return proxy.Zones{Own: own, Of: func(addr string) string { return strings.TrimPrefix(addr[:1], "-") }}
}

// Partitions are not requested together if that would leave the zone of the node.
func TestBatchStaysInItsZone(t *testing.T) {
	of := [][]string{{"a:1", "b:1", "c:1"}, {"a:2", "b:1", "c:1"}, {"a:1", "b:2", "c:2"}, {"b:1", "c:1"}, {"a:1", "c:2"}}
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, []byte(fmt.Sprint(i)))
	}
	set := held(t, "v1", nil, of, func(int) bool { return false })
	for own, want := range map[string][]string{
		"":  {"a:1 c:2", "b:1 c:1"},
		"a": {"a:1 b:1 c:1", "a:1 c:2", "a:2 b:1 c:1", "b:1 c:1"},
		"b": {"a:1 c:2", "a:1 b:2 c:2", "b:1 c:1"},
		"z": {"a:1 c:2", "b:1 c:1"},
	} {
		var mu sync.Mutex
		var asked []string
		absent := proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, strings.Join(q.Peers, " "))
			var none []byte
			for rest := q.Body; len(rest) > 0; {
				_, rest, _ = wire.CutFrame(rest)
				none = binary.BigEndian.AppendUint32(none, wire.Absent)
			}
			return &proxy.Answer{Peer: q.Peers[0], Status: 200, Length: int64(len(none)), Body: io.NopCloser(bytes.NewReader(none))}, nil
		})
		r := reads.New(catalog{"db": set}, reads.Options{Proxy: absent, Zones: byLetter(own), Logger: slog.New(slog.DiscardHandler)}).NewRead()
		r.Begin(time.Now())
		if o := r.DoBatch(&reads.Query{DB: []byte("db")}, keys); o != reads.Found {
			t.Errorf("from zone %q: outcome %d", own, o)
		}
		r.Release()
		slices.Sort(asked)
		slices.Sort(want)
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("from zone %q, the requests are to (-want +got):\n%s", own, diff)
		}
	}
}

// The map of partitions has the zones of its nodes if any of them has one.
func TestZonesOfTheMap(t *testing.T) {
	for own, tests := range map[string]map[string][]string{
		"":  {"b:1": {"", "b"}, "-:1": nil},
		"a": {"b:1": {"a", "b"}, "-:1": {"a", ""}},
	} {
		for peer, want := range tests {
			set := held(t, "v1", nil, [][]string{{peer}}, func(int) bool { return false })
			r := reads.New(catalog{"db": set}, reads.Options{Name: "me:1", Zones: byLetter(own)}).NewRead()
			r.Begin(time.Now())
			m, o := r.Partitions(&reads.Query{DB: []byte("db")})
			if o != reads.Found || !slices.Equal(m.Zones, want) || (m.Zones == nil) != (want == nil) {
				t.Errorf("from zone %q, with %s: %+v, %d", own, peer, m, o)
			}
			r.Release()
		}
	}
}
