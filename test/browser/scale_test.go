//go:build integration

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sequins/observe/status"
	"sequins/server/statuspage"
	"sequins/version/pin"
)

// The sizes of the cluster of scale.
const (
	scaleDBs        = 200
	fewDBs          = 12 // all states are in the first of them
	scaleNodes      = 30
	scalePartitions = 1000
)

// evil is markup in names, errors and reasons.
const evil = `<img src=x onerror="document.title='owned'">`

func scaleNode(i int) string { return fmt.Sprintf("cache-%02d.example.com:9599", i) }

// scale is the status of a cluster of a size that no test can start, with a number of databases, in the middle of an upgrade, with
// faults and with hostile names.
func scale(now time.Time, dbs int) status.Status {
	st := status.Status{
		Node: scaleNode(7), ShardID: "7", Zone: "eu-1b", Build: "v2.1.0", StartedAt: now.Add(-73 * time.Hour), Source: "hdfs://warehouse/sequins",
		Traffic:     status.Traffic{Seconds: 7, Requests: 41_234, Misses: 312, P50: 4.2e-6, P99: 71e-6},
		RefreshedAt: now, Disk: status.Disk{Bytes: 2 << 40, Free: 1 << 40}, ZooKeeper: &status.ZooKeeper{Connected: true},
		Warnings: []string{"the directory " + evil + " cannot be a db"}, DBs: map[string]status.DB{},
	}
	answers := make([]status.Answer, 0, scaleNodes-1)
	for i := range dbs {
		name := fmt.Sprintf("features_%03d", i)
		st.DBs[name] = scaleDB(name, i, scaleNode(7), 7, now)
	}
	for i := range scaleNodes {
		if i == 7 {
			continue
		}
		p := status.Peer{Addr: scaleNode(i), ShardID: fmt.Sprint(i), Zone: "eu-1" + string(rune('a'+i%3))}
		if i == 22 {
			answers = append(answers, status.Answer{Peer: p}) // it has gone
			answers[len(answers)-1].Error = "dial tcp: connection refused " + evil
			continue
		}
		theirs := status.Status{Node: p.Addr, Build: "v2.1.0", StartedAt: now.Add(-time.Duration(i) * time.Hour), DBs: map[string]status.DB{},
			Disk: status.Disk{Bytes: 2 << 40, Free: int64(i) << 36}, Traffic: status.Traffic{Seconds: 7, Requests: 40_000 + float64(i)*31, P50: 4e-6, P99: 61e-6}}
		for j := range dbs {
			name := fmt.Sprintf("features_%03d", j)
			theirs.DBs[name] = scaleDB(name, j, p.Addr, i, now)
		}
		if i == 3 {
			theirs.Waiting = []status.Wait{{For: status.WaitForLoad, DB: "features_000", Version: "2026-02-01", What: "version 2026-02-01 of features_000: loading, 41 %", Since: now.Add(-4 * time.Minute)}}
		}
		theirs.Complete(true, "")
		answers = append(answers, status.Answer{Peer: p, Status: theirs})
	}
	st.Waiting = []status.Wait{
		{For: status.WaitForLoad, DB: "features_000", Version: "2026-02-01", What: "version 2026-02-01 of features_000: loading, 64 %, about 2 min left", Since: now.Add(-6 * time.Minute)},
		{For: status.WaitForNodes, DB: "features_002", Version: "2026-02-01", What: "version 2026-02-01 of features_002: prepared, waiting for other nodes to hold 2 partitions: 17, 502", Since: now.Add(-90 * time.Second)},
	}
	st.Merge(answers)
	st.Events = scaleEvents(now, 50)
	for name, db := range st.DBs {
		db.Events = st.Events[:20]
		st.DBs[name] = db
	}
	st.Complete(true, "")
	return st
}

// scaleDB is what one node knows of one db: a third of its partitions on three nodes each.
func scaleDB(name string, i int, addr string, node int, now time.Time) status.DB {
	on := status.OnNode{Name: addr, State: status.Active, Current: true, CreatedAt: now.Add(-27 * time.Hour), ActiveAt: now.Add(-26 * time.Hour),
		LastModified: now.Add(-27 * time.Hour), Partitioner: "hadoop", Records: int64(40_000 + 977*i), Bytes: int64(3+i) << 20}
	for p := range scalePartitions {
		for r := range 3 {
			if (3*p+r)%scaleNodes == node && (i > 0 || p != 77) {
				on.Partitions, on.PartitionBytes = append(on.Partitions, p), append(on.PartitionBytes, int64(10_000_000+p))
			}
		}
	}
	version := func(v string, n status.OnNode) status.Version {
		return status.Version{Replicas: scaleReplicas(i, n.State), Path: "hdfs://warehouse/sequins/" + name + "/" + v, NumPartitions: scalePartitions, TargetReplication: 3, Nodes: map[string]status.OnNode{addr: n}}
	}
	db := status.DB{Traffic: status.Traffic{Seconds: 7, Requests: float64(i*i) / 3, Misses: float64(i) / 40, P50: 4e-6, P99: float64(i+30) * 2e-6}, Versions: map[string]status.Version{"2026-01-31": version("2026-01-31", on)}}
	next := status.OnNode{Name: addr, CreatedAt: now.Add(-6 * time.Minute), State: status.Building, Detail: "loading"}
	switch {
	case i == 0:
		next.Progress = &status.Progress{Files: 1000, FilesDone: 640, Bytes: 9 << 30, BytesDone: 6 << 30, Records: 4_100_000, RecordsPerSecond: 210_000, Partitions: 100, PartitionsDone: 64, ETA: now.Add(2 * time.Minute)}
		next.Partitions = on.Partitions[:len(on.Partitions)*2/3]
		db.Versions["2026-02-01"] = version("2026-02-01", next)
	case i == 1:
		next.State, next.Detail, next.Error = status.Error, "", "part-r-00003: corrupt SequenceFile at offset 181: "+evil
		db.Versions["2026-02-01"] = version("2026-02-01", next)
	case i == 2:
		next.Detail, next.Partitions = "prepared, waiting for other nodes to hold 2 partitions: 17, 502", on.Partitions
		db.Versions["2026-02-01"] = version("2026-02-01", next)
	case i == 4:
		next.State, next.Detail, next.Partitions = status.Held, "held: max_shrink: 400,000 records instead of 1,000,000, 60 % fewer, at most 20 %", on.Partitions
		db.Versions["2026-02-01"] = version("2026-02-01", next)
	case i == 5:
		db.Pin = &pin.File{Version: "2026-01-31", By: "ana", Reasons: map[string]string{"2026-01-31": "half of the input was missing " + evil}}
	}
	return db
}

// scaleReplicas is how many nodes hold each partition of a version, without the node that has gone.
func scaleReplicas(i int, state status.State) []int {
	if state == status.Error {
		return nil
	}
	all := make([]int, scalePartitions)
	for p := range all {
		for r := range 3 {
			if (3*p+r)%scaleNodes != 22 && (i > 0 || p != 77) {
				all[p]++
			}
		}
	}
	return all
}

func scaleEvents(now time.Time, n int) (all []status.Event) {
	for i := range n {
		e := status.Event{ID: fmt.Sprintf("5f0c-%d", n-i), Time: now.Add(-time.Duration(i*i) * time.Minute), Node: scaleNode(7), DB: fmt.Sprintf("features_%03d", i%7),
			Version: "2026-01-31", Kind: status.EventKinds[(i*5)%len(status.EventKinds)]}
		switch e.Kind {
		case status.EventFailed:
			e.Reason = "part-r-00003: corrupt SequenceFile at offset 181: " + evil
		case status.EventActive:
			e.Reason = "instead of 2026-01-30"
		case status.EventLoaded:
			e.Reason = "files 100/100, bytes 1073741824/1073741824, partitions 100/100, records 4000000, took 41s"
		}
		all = append(all, e)
	}
	return all
}

// serveScale serves the pages that the renderer makes of a status, until the test ends.
func serveScale(t *testing.T, st status.Status) (addr string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		only := strings.Trim(r.URL.Path, "/")
		var page []byte
		var err error
		if only == "-/runbook" {
			page = statuspage.Runbook
		} else {
			page, err = statuspage.Render(st, only, time.Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", statuspage.Policy)
		w.Write(page) //nolint:errcheck // the browser has gone
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestScale shows the pages of the renderer a cluster of 200 dbs and 30 nodes: they have to stay quick, and small.
func TestScale(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	st := scale(now, scaleDBs)
	for _, only := range []string{"", "features_000"} {
		start := time.Now()
		page, err := statuspage.Render(st, only, now)
		t.Logf("the page %q: %d KB in %v, %v", only, len(page)/1000, time.Since(start), err)
	}
	script(t, "scale", serveScale(t, st), nil)
}

// TestAccess checks the access to all states of scale, with fewer rows of the same kinds: the time that axe takes grows faster than
// the number of rows.
func TestAccess(t *testing.T) {
	t.Parallel()
	script(t, "few", serveScale(t, scale(time.Now().UTC(), fewDBs)), nil)
}
