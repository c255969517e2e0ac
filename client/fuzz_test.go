package client

import (
	"bytes"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever a node answers, a batch has one value for each key or is an error.
func FuzzDecodeBatch(f *testing.F) {
	for _, b := range []string{"", "\xff\xff\xff\xff", "\x00\x00\x00\x01x", "\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x02xy", "\xff\xff\xff\xfe"} {
		f.Add([]byte(b), len(b)/4, int64(100))
	}
	f.Fuzz(func(t *testing.T, b []byte, n int, limit int64) {
		if n < 0 || n > 1<<16 {
			return
		}
		values, err := decodeBatch(b, n, limit)
		if err != nil {
			return
		}
		size := 4 * n
		for _, v := range values {
			if int64(len(v)) > max(limit, 0) {
				t.Errorf("a value of %d bytes", len(v))
			}
			size += len(v)
		}
		if len(values) != n || size != len(b) {
			t.Errorf("%d values of %d bytes, want %d of %d", len(values), size, n, len(b))
		}
	})
}

// Whatever a node answers, a map is consistent or is an error.
func FuzzParseMap(f *testing.F) {
	f.Add([]byte(`{"db":"db","version":"v1","partitioner":"spark","partitions":2,"scheme":"http","nodes":["self","h:1"],"replicas":[[0,1],[]]}`))
	f.Add([]byte(`{"db":"db","version":"v1","partitioner":"string","partitions":0,"scheme":"http","nodes":[],"replicas":[]}`))
	f.Add([]byte(`{"db":"db","replicas":[[9]]}`))
	f.Add([]byte(`{"db":"db","version":"v1","partitioner":"spark","partitions":2,"scheme":"http","nodes":["self","h:1"],"zones":["x",""],"replicas":[[0,1],[]]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, p, err := parseMap(b, "db", "http", "asked:1")
		if err != nil {
			return
		}
		m := &partitions{version: a.Version, partitioner: p, replicas: a.Replicas}
		for i, addr := range a.Nodes {
			n := new(node)
			n.zone.Store(int32((&Options{Zone: "x"}).zoneOf(a, i)))
			m.nodes = append(m.nodes, n)
			if !validAddr(addr) {
				t.Errorf("address %q", addr)
			}
		}
		for _, key := range [][]byte{{}, []byte("key"), {0xff, 0x80}} {
			for _, n := range append(m.shuffled(m.of(key)), m.ofAll([][]byte{key})...) {
				_ = m.nodes[n]
			}
		}
	})
}

// The path of a key is one that HTTP can carry, and it is the key again when it is decoded.
func FuzzPathOf(f *testing.F) {
	for _, key := range []string{"k", "..", "a/b", "\x00\xff", "%41", "?x#y"} {
		f.Add([]byte(key))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		path := pathOf("db", key)
		escaped, _ := strings.CutPrefix(path, "/db/")
		decoded, err := url.PathUnescape(escaped)
		if err != nil || !bytes.Equal([]byte(decoded), key) || strings.ContainsAny(escaped, "/?# \r\n") {
			t.Errorf("%q: %q, %v", key, path, err)
		}
	})
}

// A session that can be read is exported as it was read.
func FuzzResumeSession(f *testing.F) {
	for _, s := range []string{"", "db=v1", "a=1&b=2", "a=%zz", "a=1;b"} {
		f.Add(s)
	}
	c, err := New(Options{Addrs: []string{"h:1"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	f.Fuzz(func(t *testing.T, exported string) {
		s, err := c.ResumeSession(exported)
		if err != nil {
			return
		}
		again, err := c.ResumeSession(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q: %q, %v", exported, s, err)
		}
	})
}

// nodesIn returns nodes in the zone of the client (x), in another one (y), and in none (-).
func nodesIn(zones string) (all []*node) {
	for _, letter := range zones {
		n := new(node)
		n.zone.Store(int32(map[rune]zone{'x': sameZone, 'y': otherZone, '-': unknownZone}[letter]))
		all = append(all, n)
	}
	return all
}

// The holders of a key in the zone of the client come first, and each order of the others and of them is possible. Of those of a
// batch, there are at most two, in the order of what they hold.
func TestNodesByZone(t *testing.T) {
	for _, test := range []struct{ zones, first string }{
		{"----", "0123"}, {"yyyy", "0123"}, {"-y-y", "0123"}, {"xxxx", "0123"}, {"xyyy", "0"}, {"y-xy", "2"}, {"yx-x", "13"},
	} {
		m := &partitions{replicas: [][]int{{3, 1, 0, 2}}, nodes: nodesIn(test.zones)}
		orders := map[string]bool{}
		for range 1000 {
			order := ""
			for _, n := range m.shuffled(m.of([]byte("k"))) {
				order += strconv.Itoa(n)
			}
			orders[order] = true
			if near := order[:len(test.first)]; strings.Trim(near, test.first) != "" {
				t.Fatalf("zones %s: the order is %s", test.zones, order)
			}
		}
		if want := factorial(len(test.first)) * factorial(4-len(test.first)); len(orders) != want {
			t.Errorf("zones %s: %d orders, want %d", test.zones, len(orders), want)
		}
	}
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, []byte{byte(i)})
	}
	for zones, want := range map[string][]int{"-----": {0, 1, 2}, "yyxyy": {2, 0, 1}, "yxyyx": {1, 4, 0}, "xyxxx": {0, 2, 1}, "xxxxx": {0, 1}} {
		m := &partitions{replicas: [][]int{{0, 1, 2, 3, 4}, {0, 1, 2, 3}, {0, 1, 2}, {0, 1}, {0}}, nodes: nodesIn(zones)}
		if got := m.ofAll(keys); !slices.Equal(got, want) {
			t.Errorf("zones %s: nodes %v, want %v", zones, got, want)
		}
	}
}

func factorial(n int) int {
	if n <= 1 {
		return 1
	}
	return n * factorial(n-1)
}

// The nodes that hold most of a batch are asked first.
func TestNodesOfABatch(t *testing.T) {
	m := &partitions{replicas: [][]int{{0, 1}, {1, 2}, {1}, {3}}, nodes: nodesIn("-----")}
	var keys [][]byte
	for i := range 100 {
		keys = append(keys, []byte{byte(i)})
	}
	got := m.ofAll(keys)
	if len(got) != 3 || got[0] != 1 {
		t.Errorf("nodes %v", got)
	}
	var none *partitions
	if none.ofAll(keys) != nil || none.of(keys[0]) != nil {
		t.Error("no map has nodes")
	}
}
