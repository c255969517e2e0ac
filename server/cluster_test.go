package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sequins/shard"
	"sequins/status"

	"github.com/google/go-cmp/cmp"
)

// otherNode is a node that says something when it is asked for its status.
func otherNode(t *testing.T, says string) (addr string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.RequestURI() != "/?proxy=status" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, strings.ReplaceAll(says, "SELF", r.Host))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), asked
}

// saysOf is what a node says of version 1 of a db.
func saysOf(db, partitions string) string {
	return `{"build": "b", "disk": {"bytes": 1000, "bytes_free": 90, "bytes_blocks": 5, "low": true}, "dbs": {"` + db + `": {"versions": {"1": {"path": "/p", "num_partitions": 3, "target_replication": 2,
		"nodes": {"SELF": {"name": "SELF", "state": "ACTIVE", "partitions": ` + partitions + `}, "liar": {"partitions": [0]}}}}}}}`
}

// A node shows what the others say of themselves, and nothing else of it. What
// makes no sense is left out; and the answers, which are shown to others
// meanwhile, stay as they are.
func TestStatusOfOthers(t *testing.T) {
	well, asked := otherNode(t, saysOf("db", "[1, 7, 2, -1]"))
	alone, _ := otherNode(t, saysOf("theirs", "[0]"))
	odd, _ := otherNode(t, "no JSON")
	peers := []status.Peer{{Addr: well, ShardID: "w"}, {Addr: alone}, {Addr: odd}, {Addr: "127.0.0.1:1"}}
	s := newServer(&catalog{state: status.Status{Node: "me:1", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
		"1": {NumPartitions: 3, TargetReplication: 2, Nodes: map[string]status.OnNode{"me:1": {Partitions: []int{0}, Current: true, State: status.Active}}},
	}}}}}, testOptions{Peers: func() []status.Peer { return peers }})
	defer s.Shutdown(context.Background()) //nolint:errcheck // it has served nothing
	look := func(uri string) (st status.Status) {
		w := httptest.NewRecorder()
		s.nodePage(w, httptest.NewRequest("GET", uri, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil {
			t.Error(err)
		}
		return st
	}
	var viewers sync.WaitGroup
	for range 4 {
		viewers.Go(func() {
			st := look("/")
			v := st.DBs["db"].Versions["1"]
			if diff := cmp.Diff([]int{1, 2}, v.Nodes[well].Partitions); diff != "" || len(v.Nodes) != 2 {
				t.Errorf("nodes %v: %s", v.Nodes, diff)
			}
			theirs := st.DBs["theirs"].Versions["1"]
			if theirs.Path != "/p" || theirs.NumPartitions != 3 || len(theirs.Nodes[alone].Partitions) != 1 {
				t.Errorf("what only others know: %+v", theirs)
			}
			if p := st.Peers[well]; p.ShardID != "w" || p.Build != "b" || p.Error != "" || p.Disk != (status.Disk{Bytes: 1000, Free: 90, Blocks: 5, Low: true}) {
				t.Errorf("a peer that is well: %+v", p)
			}
			for _, addr := range []string{odd, "127.0.0.1:1"} {
				if st.Peers[addr].Error == "" {
					t.Errorf("nothing is said of %s", addr)
				}
			}
		})
	}
	viewers.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if st := look("/?proxy=status"); st.Peers != nil || len(st.DBs) != 1 || len(st.DBs["db"].Versions["1"].Nodes) != 1 || asked.Load() != 1 {
		t.Errorf("to a node it speaks of others: %+v", st)
	}
}

// A peer that redirects does not make the node send the credential of the cluster elsewhere.
func TestStatusFollowsNoRedirect(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	peer := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer peer.Close()
	addr := peer.Listener.Addr().String()
	s := newServer(&catalog{}, testOptions{PeerSecret: "secret", Peers: func() []status.Peer { return []status.Peer{{Addr: addr}} }})
	defer s.Shutdown(context.Background()) //nolint:errcheck // it has served nothing
	if st := s.cluster(); st.Peers[addr].Error == "" {
		t.Error("a redirect is no status")
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// A peer that exaggerates costs neither time nor memory, and changes nothing of what this node knows itself.
func TestStatusOfHostilePeers(t *testing.T) {
	var many strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&many, `,"%d":{"num_partitions":2000000000,"nodes":{"SELF":{"partitions":[0]}}}`, i+2)
	}
	absurd := `{"dbs":{"db":{"versions":{"1":{"num_partitions":2000000000,"nodes":{"SELF":{"state":"ACTIVE","partitions":[1,1,1999999999,-2000000000]}}}` + many.String() + `}}}}`
	exaggerating, _ := otherNode(t, absurd)
	refused := map[string]string{
		"longer than 16 MiB": `{"dbs":{},"build":"` + strings.Repeat("x", maxStatus) + `"}`,
		"fields":             `{"dbs":{` + strings.Repeat(`"":null,`, maxMembers+1) + `"x":{}}}`,
		"cannot be read":     `{"dbs":{"db":{"versions":{"1":{"num_partitions":1e40}}}}}`,
	}
	peers, reasons := []status.Peer{{Addr: exaggerating}}, map[string]string{}
	for reason, says := range refused {
		addr, _ := otherNode(t, says)
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
	s := newServer(&catalog{state: status.Status{Node: "me:1", DBs: map[string]status.DB{"db": {Versions: map[string]status.Version{
		"1": {NumPartitions: 2, TargetReplication: 1, Nodes: map[string]status.OnNode{"me:1": {Partitions: []int{0}, Current: true, State: status.Active}}},
	}}}}}, testOptions{Peers: func() []status.Peer { return peers }})
	defer s.Shutdown(context.Background())                                             //nolint:errcheck // it has served nothing
	s.peerStatus.timeout, s.peerStatus.client.Timeout = 10*time.Second, 10*time.Second // the machine may be slow
	s.peerStatus.client.Transport.(*http.Transport).ResponseHeaderTimeout = 0
	done := make(chan status.Status, 1)
	go func() {
		st := s.cluster()
		done <- st
	}()
	var st status.Status
	select {
	case st = <-done:
	case <-time.After(patience):
		t.Fatal("it takes too long")
	}
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

// All nodes together have a share of bytes.
func TestSurveyIsBounded(t *testing.T) {
	var left atomic.Int64
	left.Store(10)
	for i, want := range []string{"", "more than 128 MiB"} {
		_, err := io.ReadAll(&rationed{Reader: strings.NewReader("1234567"), left: &left})
		if fmt.Sprint(err) == "<nil>" != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("node %d: %v", i, err)
		}
	}
}
