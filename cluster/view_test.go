package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/internal/content"
	"sequins/zk"
)

// input returns an input of a version whose files are named by text.
func input(name, text string) content.Input {
	return content.Input{Name: name, Hash: content.Sum(text)}
}

// Contents of version 1: x and y have one input each, redivided has that of x.
var (
	x         = content.Content{Input: input("1", "x"), Division: content.Sum("hadoop")}
	y         = content.Content{Input: input("1", "y"), Division: content.Sum("hadoop")}
	redivided = content.Content{Input: x.Input, Division: content.Sum("string")}
)

// znode returns what a node publishes that serves a partition of contents; of any without contents.
func znode(partition int, addr string, contents ...content.Content) zk.Entry {
	e := zk.Entry{Name: fmt.Sprintf("%05d@%s", partition, addr)}
	if len(contents) > 0 {
		e.Data = zk.EncodeContents(contents)
	}
	return e
}

// Replicas of another content are not counted, nor those of one that cannot be read. Those of upstream's nodes are, and
// those of all divisions of the input while this node has none.
func TestHolders(t *testing.T) {
	code := x.Code()
	entries := []zk.Entry{
		znode(0, "a:1", x), znode(0, "b:1", redivided), znode(0, "c:1", y), znode(0, "old:1"),
		{Name: "00000@newer:1", Data: []byte(`{"records": 7, "contents": ["` + code + `"]}`)},
		znode(1, "both:1", y, x), znode(1, "c:1", y), znode(1, "me:1", x),
		{Name: "00002@odd:1", Data: []byte("{")},
		{Name: "00002@none:1", Data: []byte(`{"contents": []}`)},
		{Name: "00002@number:1", Data: []byte(`{"contents": 7}`)},
		{Name: "00002@code:1", Data: []byte(`{"contents": ["` + code + `", "` + code[1:] + `"]}`)},
		{Name: "00002@large:1", Data: []byte(`{"contents": ["` + strings.Repeat(code+`","`, 200) + `"]}`)},
		{Name: "00002@hidden:1", Unreadable: true},
		{Name: "00002@twice:1", Data: []byte(`{"contents": ["` + code + `", "` + code + `"]}`)},
	}
	all, malformed := parseAdvertisements(entries, "1", "me:1")
	if malformed == nil {
		t.Error("no malformed znode is reported")
	}
	anyOf := func(in content.Input) content.Content { return content.Content{Input: in} }
	for c, want := range map[content.Content][][]string{
		x:                      {{"a:1", "old:1", "newer:1"}, {"both:1"}, {"twice:1"}},
		redivided:              {{"b:1", "old:1"}},
		y:                      {{"c:1", "old:1"}, {"both:1", "c:1"}},
		anyOf(x.Input):         {{"a:1", "b:1", "old:1", "newer:1"}, {"both:1"}, {"twice:1"}},
		anyOf(input("1", "z")): {{"old:1"}},
	} {
		v := newView(all, c, true)
		var peers [][]string
		for _, h := range *v {
			peers = append(peers, h.peers)
		}
		if diff := cmp.Diff(want, peers); diff != "" {
			t.Errorf("%v: %s", c, diff)
		}
		for p, of := range want {
			if diff := cmp.Diff(of, v.of(p).advertising()); diff != "" {
				t.Errorf("%v: replicas of partition %d: %s", c, p, diff)
			}
		}
	}
}

// Znodes whose names are not those of partitions are ignored, and one of them is reported.
func TestMalformedNames(t *testing.T) {
	for _, name := range []string{"2@c:1", "stray", "99999999@d:1"} {
		all, malformed := parseAdvertisements([]zk.Entry{{Name: name}, znode(0, "a:1")}, "1", "me:1")
		if len(all) != 1 || malformed == nil || !strings.Contains(malformed.Error(), name) {
			t.Errorf("%s: %v, %v", name, all, malformed)
		}
	}
}

// A node that is not advertised any more remains a peer for a while, as it may
// only have lost ZooKeeper. It does not count as a replica.
func TestVanished(t *testing.T) {
	began := time.Now()
	var all []advertisement
	check := func(what string, after time.Duration, entries []zk.Entry, replicas, peers [][]string) {
		t.Helper()
		now, _ := parseAdvertisements(entries, "1", "me:1")
		all = withVanished(now, all, began.Add(after))
		v := newView(all, x, true)
		for p := range 3 {
			for of, both := range map[string][2][]string{"replicas": {v.of(p).advertising(), replicas[p]}, "peers": {v.of(p).peers, peers[p]}} {
				if got := slices.Sorted(slices.Values(both[0])); !slices.Equal(got, both[1]) {
					t.Errorf("%s: %s of partition %d are %q, want %q", what, of, p, got, both[1])
				}
			}
		}
		if len(v.of(0).advertising()) > 0 && !slices.Equal(v.of(0).advertising(), v.of(0).peers[:len(v.of(0).advertising())]) {
			t.Errorf("%s: of %q, those that have vanished are not the last", what, v.of(0).peers)
		}
	}
	a, b, c := znode(0, "a:1", x), znode(0, "b:1", x), znode(0, "c:1", x)
	both := [][]string{{"a:1", "b:1"}, {"b:1"}, nil}
	check("at first", 0, []zk.Entry{a, b, znode(1, "b:1", x)}, both, both)
	check("b is gone", time.Second, []zk.Entry{a}, [][]string{{"a:1"}, nil, nil}, both)
	check("all are gone", 2*time.Second, nil, make([][]string, 3), both)
	check("another has come", 3*time.Second, []zk.Entry{c}, [][]string{{"c:1"}, nil, nil}, [][]string{{"a:1", "b:1", "c:1"}, {"b:1"}, nil})
	check("b is back", 4*time.Second, []zk.Entry{b, c}, [][]string{{"b:1", "c:1"}, nil, nil}, [][]string{{"a:1", "b:1", "c:1"}, {"b:1"}, nil})
	left := [][]string{{"b:1", "c:1"}, nil, nil}
	check("much later", missedFor+time.Hour, []zk.Entry{b, c}, left, left)
}

// The number of vanished peers is bounded.
func TestVanishedAreFew(t *testing.T) {
	var all []advertisement
	for i := range 1000 {
		now, _ := parseAdvertisements([]zk.Entry{znode(0, fmt.Sprintf("n%d:1", i), x)}, "1", "me:1")
		all = withVanished(now, all, time.Now())
	}
	if n := len(newView(all, x, true).of(0).peers); n > maxMissed+1 {
		t.Errorf("%d can be asked", n)
	}
}
