package peerstatus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sequins/internal/wire"
	"sequins/observe/status"
	"sequins/shard"
)

// otherNode is a node with a given answer to requests for its status.
func otherNode(t *testing.T, says string) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.ReplaceAll(says, "SELF", r.Host))
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// A peer that exaggerates costs neither time nor memory, and changes nothing of what this node knows itself.
func TestStatusOfHostilePeers(t *testing.T) {
	var many strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&many, `,"%d":{"num_partitions":2000000000,"nodes":{"SELF":{"partitions":[0]}}}`, i+2)
	}
	absurd := `{"dbs":{"db":{"versions":{"1":{"num_partitions":2000000000,"nodes":{"SELF":{"state":"ACTIVE","partitions":[1,1,1999999999,-2000000000]}}}` + many.String() + `}}}}`
	exaggerating := otherNode(t, absurd)
	refused := map[string]string{
		"longer than 16384 KiB": `{"dbs":{},"build":"` + strings.Repeat("x", maxStatus) + `"}`,
		"elements":              `{"dbs":{"a":{"unknown":[` + strings.Repeat("1,", maxElements+1) + `1]}}}`,
		"cannot be read":        `{"dbs":{"db":{"versions":{"1":{"num_partitions":1e40}}}}}`,
	}
	peers, reasons := []status.Peer{{Addr: exaggerating}}, map[string]string{}
	for reason, says := range refused {
		addr := otherNode(t, says)
		peers, reasons[addr] = append(peers, status.Peer{Addr: addr}), reason
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"build":"`)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer endless.Close()
	silent := endless.Listener.Addr().String()
	peers, reasons[silent] = append(peers, status.Peer{Addr: silent}), "deadline"
	client := New(func() []status.Peer { return peers }, wire.NewClient(nil, ""))
	client.timeout = 10 * time.Second // the machine may be slow
	st := status.Status{Node: "me:1", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
		"1": {NumPartitions: 2, TargetReplication: 1, Nodes: map[string]status.OnNode{"me:1": {Partitions: []int{0}, Current: true, State: status.Active}}},
	}}}}
	st.Merge(client.Ask(t.Context()))
	st.Complete(true, "")
	for addr, reason := range reasons {
		if got := st.Peers[addr].Error; !strings.Contains(got, reason) {
			t.Errorf("%s: %.200s", reason, got)
		}
	}
	if got := st.Peers[exaggerating].Error; got != "" {
		t.Errorf("the other one: %s", got)
	}
	own, theirs := st.DBs["db"].Versions["1"], st.DBs["db"].Versions["2"]
	if own.NumPartitions != 2 || own.MissingPartitions != 0 || !slices.Equal(own.Nodes[exaggerating].Partitions, []int{1}) {
		t.Errorf("what this node knows: %+v", own)
	}
	if theirs.NumPartitions != shard.MaxPartitions || theirs.MissingPartitions != shard.MaxPartitions-1 {
		t.Errorf("what it does not know: %+v", theirs)
	}
}

// All nodes together are bounded: each has an equal share.
func TestSharesAreBounded(t *testing.T) {
	for _, nodes := range []int{1, 4, 8, 100, 5000} {
		most := share(nodes)
		if most.bytes > maxStatus || most.bytes*nodes > maxAllStatus || most.elements > maxElements || most.elements*nodes > maxAllElements || most.bytes == 0 || most.elements == 0 {
			t.Errorf("%d nodes: %+v", nodes, most)
		}
	}
	if share(0) != (limits{maxStatus, maxElements}) {
		t.Errorf("of none: %+v", share(0))
	}
}
