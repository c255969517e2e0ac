package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sequins/observe/status"

	"github.com/google/go-cmp/cmp"
)

// otherNode is a node with a given answer to requests for its status.
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

// saysOf is a node's status of version 1 of a db.
func saysOf(db, partitions string) string {
	return `{"build": "b", "disk": {"bytes": 1000, "bytes_free": 90, "bytes_blocks": 5, "low": true}, "dbs": {"` + db + `": {"versions": {"1": {"path": "/p", "num_partitions": 3, "target_replication": 2,
		"nodes": {"SELF": {"name": "SELF", "state": "ACTIVE", "partitions": ` + partitions + `}, "liar": {"partitions": [0]}}}}}}}`
}

// A node shows what other nodes report about themselves, and nothing else of their answers. Invalid
// parts are left out, and the cached answers are not modified.
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
		s.handle(w, httptest.NewRequest("GET", uri, nil))
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
