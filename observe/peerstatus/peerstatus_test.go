package peerstatus

import (
	"fmt"
	"io"
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
		"longer than 16 MiB": `{"dbs":{},"build":"` + strings.Repeat("x", maxStatus) + `"}`,
		"elements":           `{"dbs":{"a":{"hot_keys":[` + strings.Repeat("1,", maxElements+1) + `1]}}}`,
		"cannot be read":     `{"dbs":{"db":{"versions":{"1":{"num_partitions":1e40}}}}}`,
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

// All nodes together have a share of elements.
func TestElementsAreBounded(t *testing.T) {
	body := []byte(`{"warnings":["` + strings.Repeat(`","`, maxElements) + `"]}`)
	client, all := New(nil, nil), new(said)
	for i := range maxAllElements/maxElements + 1 {
		var st status.Status
		err := client.decode(t.Context(), body, all, &st)
		if want := i < maxAllElements/maxElements; (err == nil) != want {
			t.Errorf("node %d: %v", i, err)
		}
	}
}

// All nodes together have a share of bytes.
func TestSurveyIsBounded(t *testing.T) {
	var all said
	all.bytes.Store(maxAllStatus - 10)
	for i, want := range []string{"", "more than 128 MiB"} {
		_, err := io.ReadAll(&counted{Reader: strings.NewReader("1234567"), all: &all})
		if fmt.Sprint(err) == "<nil>" != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("node %d: %v", i, err)
		}
	}
}
