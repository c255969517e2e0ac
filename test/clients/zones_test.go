//go:build integration

package clients

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// In Python, the node in the zone of the client is asked as soon as the map is there, and the other one when that fails.
func TestZonesInPython(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		zone       string
		near, lost bool // whether the node in the zone x is asked, and ends its connections
	}{{"x", true, false}, {"x", true, true}, {"y", false, false}, {"z", false, false}, {"", false, false}} {
		var away, here atomic.Int64
		near := startNode(t, func(w http.ResponseWriter, r *http.Request) {
			here.Add(1)
			if test.lost {
				panic(http.ErrAbortHandler)
			}
			answerValue(w, r)
		})
		var far *node
		far = startNode(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" {
				fmt.Fprintf(w, `{"db":"db","version":"v1","partitioner":"string","partitions":1,"scheme":"http","nodes":["%s","%s"],"zones":["y","x"],"replicas":[[0,1]]}`, far.addr, near.addr)
				return
			}
			if here.Load() > 0 {
				away.Add(1)
			}
			answerValue(w, r)
		})
		for _, line := range drive(t, sameKeys(500), "repeat", "db", fmt.Sprintf(`{"zone": %q}`, test.zone), far.addr) {
			if line != value {
				t.Errorf("zone %q, lost %v: %s", test.zone, test.lost, line)
			}
		}
		if test.near != (here.Load() > 0) || test.lost != (away.Load() > 0) {
			t.Errorf("zone %q, lost %v: the node in the zone x was asked %d times, and then the other one %d times", test.zone, test.lost, here.Load(), away.Load())
		}
	}
}
