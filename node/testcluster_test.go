package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sequins/internal/content"
	"sequins/version"
	"sequins/version/report"
)

// A testCluster is what a node is told of its peers. Contents have labels: that of the first input of a version that the node follows is the
// version's name, that of the second one is <name>#2.
type testCluster struct {
	mu         sync.Mutex
	labels     map[follows]string
	peers      map[string][]int // partitions that one peer holds, by label
	owned      []int            // nil: all
	surplus    []int            // what others have taken over
	advertised map[string][]int
	divisions  map[string]string
	reports    map[string]string // of this node
	followed   map[string]bool
	others     map[string][]content.Content // what another node has, by the names of versions
	addr       string                       // of that node
	mixed      bool
	left       bool // nothing is published any more
	changes    chan map[string]bool
	peer       *testCluster // of another node, whose contents and reports this one sees
	watchers   []*testCluster
}

// follows is an input that a node follows.
type follows struct {
	db string
	in content.Input
}

func newCluster() *testCluster {
	return &testCluster{labels: map[follows]string{}, peers: map[string][]int{}, advertised: map[string][]int{}, divisions: map[string]string{},
		reports: map[string]string{}, followed: map[string]bool{}, others: map[string][]content.Content{},
		addr: "127.0.0.1:1", changes: make(chan map[string]bool, 1)}
}

func (c *testCluster) Join(context.Context, func([]string) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = false // a node has started again
	return nil
}

func (c *testCluster) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.advertised, c.reports = true, map[string][]int{}, map[string]string{}
	for _, other := range c.watchers {
		other.changed()
	}
}

func (c *testCluster) Follow(_ context.Context, db string, in content.Input) version.Following {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := follows{db, in}
	label, before := c.labels[key], 1
	for other := range c.labels {
		if other.db == db && other.in.Name == in.Name {
			before++
		}
	}
	if label == "" && before == 1 {
		label = in.Name
	} else if label == "" {
		label = fmt.Sprintf("%s#%d", in.Name, before)
	}
	c.labels[key], c.followed[label] = label, true
	return testFollowing{testCluster: c, db: db, in: in, v: label}
}

func (c *testCluster) Mixed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mixed
}

func (c *testCluster) Knows(string) bool { return false }

func (c *testCluster) Changes() <-chan map[string]bool { return c.changes }

// changed says that something may have changed for any database.
func (c *testCluster) changed() {
	select {
	case c.changes <- map[string]bool{"": true}:
	default:
	}
}

// A testFollowing is what a node is told of one input.
type testFollowing struct {
	version.Solo
	*testCluster
	db string
	in content.Input
	v  string // its label
}

func (f testFollowing) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followed, f.v)
	delete(f.reports, f.v)
}

// SetDivision withdraws what was advertised by another division.
func (f testFollowing) SetDivision(division string, _ int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.divisions[f.v]; before != "" && before != division {
		delete(f.advertised, f.v)
		delete(f.reports, f.v)
	}
	f.divisions[f.v] = division
}

// Elsewhere has what the peer holds once this node has planned it, and what another node has.
func (f testFollowing) Elsewhere() map[content.Content][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[content.Content][]string)
	for key, label := range f.labels {
		if key.db == f.db && key.in.Name == f.in.Name && len(f.peers[label]) > 0 && f.divisions[label] != "" {
			all[content.Content{Input: key.in, Division: f.divisions[label]}] = []string{f.addr}
		}
	}
	for _, c := range f.others[f.in.Name] {
		all[c] = []string{f.addr}
	}
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		for key, label := range f.peer.labels {
			if key.db == f.db && key.in.Name == f.in.Name && (len(f.peer.advertised[label]) > 0 || f.peer.reports[label] != "") {
				all[content.Content{Input: key.in, Division: f.peer.divisions[label]}] = []string{f.addr}
			}
		}
	}
	return all
}

// Surplus is those of f.surplus that the node holds.
func (f testFollowing) Surplus(held []bool) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.surplus), func(p int) bool { return !held[p] })
}

func (f testFollowing) Owned(partitions int) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owned != nil {
		return f.owned
	}
	return version.Solo{}.Owned(partitions)
}

func (f testFollowing) Peers(partition int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.peers[f.v], partition) {
		return []string{"peer:1"}
	}
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		label := f.peer.labels[follows{f.db, f.in}]
		if (f.divisions[f.v] == "" || f.peer.divisions[label] == f.divisions[f.v]) && slices.Contains(f.peer.advertised[label], partition) {
			return []string{f.addr}
		}
	}
	return nil
}

func (f testFollowing) Replicas(partition int) int {
	return len(f.Peers(partition))
}

func (f testFollowing) Advertise(partition int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return
	}
	f.advertised[f.v] = append(f.advertised[f.v], partition)
	for _, other := range f.watchers {
		other.changed()
	}
	if f.divisions[f.v] == "" {
		panic("advertised without a division")
	}
}

func (f testFollowing) Withdraw(partitions ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(partitions) == 0 {
		delete(f.advertised, f.v)
	}
	f.advertised[f.v] = slices.DeleteFunc(f.advertised[f.v], func(p int) bool { return slices.Contains(partitions, p) })
}

func (f testFollowing) Report(data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.divisions[f.v] == "" {
		panic("reported without a division")
	}
	if f.left || f.reports[f.v] == string(data) {
		return
	}
	f.reports[f.v] = string(data)
	for _, other := range f.watchers {
		other.changed()
	}
}

func (f testFollowing) Reports() (map[string]report.Report, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peer != nil {
		f.peer.mu.Lock()
		defer f.peer.mu.Unlock()
		label := f.peer.labels[follows{f.db, f.in}]
		if r, err := report.Parse([]byte(f.peer.reports[label])); err == nil && f.peer.divisions[label] == f.divisions[f.v] {
			return map[string]report.Report{f.addr: r}, true
		}
	}
	return nil, true
}

// own sets the partitions that the node owns.
func (c *testCluster) own(partitions ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned = append([]int{}, partitions...) // nil: all
}

// hold says that a peer has partitions of a version.
func (c *testCluster) hold(v string, partitions ...int) {
	c.mu.Lock()
	c.peers[v] = partitions
	c.mu.Unlock()
	c.changed()
}

// other says that another node has other inputs of a version, none if they have no names.
func (c *testCluster) other(v string, inputs ...string) {
	var others []content.Content
	for _, name := range inputs {
		others = append(others, content.Content{Input: content.Input{Name: v, Hash: content.Sum(name)}, Division: content.Sum("any")})
	}
	c.holdsOther(v, others...)
}

// holdsOther says that another node has contents of a version.
func (c *testCluster) holdsOther(v string, others ...content.Content) {
	c.mu.Lock()
	c.others[v] = others
	c.mu.Unlock()
	c.changed()
}

// report returns what this node reports of a content.
func (c *testCluster) report(v string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reports[v]
}

// division returns what this node has told of its division.
func (c *testCluster) division(v string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.divisions[v]
}

// label returns the label of an input that the node follows or has followed; "" of the zero Input.
func (c *testCluster) label(in content.Input) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, label := range c.labels {
		if key.in == in {
			return label
		}
	}
	return ""
}

// take says that others have taken over partitions, of three.
func (c *testCluster) take(partitions ...int) {
	c.mu.Lock()
	c.surplus = partitions
	c.owned = slices.DeleteFunc([]int{0, 1, 2}, func(p int) bool { return slices.Contains(partitions, p) })
	c.mu.Unlock()
	c.changed()
}

func (c *testCluster) follows() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.followed))
}

func (c *testCluster) has(v string) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.advertised[v]))
}
