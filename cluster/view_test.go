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
		replicas, others := holders(all, c)
		if diff := cmp.Diff(want, replicas); diff != "" {
			t.Errorf("%v: %s", c, diff)
		}
		for _, node := range []string{"odd:1", "none:1", "number:1", "code:1", "large:1", "hidden:1"} {
			if !others[holding{2, node}] {
				t.Errorf("%v: %s is not one of another content", c, node)
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
	now := time.Now()
	v := new(view)
	check := func(what string, replicas, peers [][]string) {
		t.Helper()
		if diff := cmp.Diff(replicas, v.replicas); diff != "" {
			t.Errorf("%s: replicas\n%s", what, diff)
		}
		for p, want := range peers {
			if got := slices.Sorted(slices.Values(at(v.peers, p))); !slices.Equal(got, want) {
				t.Errorf("%s: of partition %d can be asked %q, want %q", what, p, got, want)
			}
		}
	}
	both := [][]string{{"a", "b"}, {"b"}}
	v = v.next(both, nil, now)
	check("at first", both, [][]string{{"a", "b"}, {"b"}, nil})
	v = v.next([][]string{{"a"}}, nil, now.Add(time.Second))
	check("b is gone", [][]string{{"a"}}, [][]string{{"a", "b"}, {"b"}})
	v = v.next(nil, nil, now.Add(2*time.Second))
	check("all are gone", nil, [][]string{{"a", "b"}, {"b"}})
	v = v.next([][]string{{"c"}}, nil, now.Add(3*time.Second))
	check("another has come", [][]string{{"c"}}, [][]string{{"a", "b", "c"}, {"b"}})
	v = v.next([][]string{{"b", "c"}}, nil, now.Add(4*time.Second))
	check("b is back", [][]string{{"b", "c"}}, [][]string{{"a", "b", "c"}, {"b"}})
	v = v.next([][]string{{"b", "c"}}, nil, now.Add(missedFor+time.Hour))
	check("much later", [][]string{{"b", "c"}}, [][]string{{"b", "c"}, nil})
}

// The number of vanished peers is bounded.
func TestVanishedAreFew(t *testing.T) {
	v := new(view)
	for i := range 1000 {
		v = v.next([][]string{{"n" + string(rune('a'+i%26)) + string(rune('a'+i/26))}}, nil, time.Now())
	}
	if n := len(at(v.peers, 0)); n > maxMissed+1 {
		t.Errorf("%d can be asked", n)
	}
}
