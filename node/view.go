package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/load/loadproc"
	"sequins/observe/status"
	"sequins/version"
	"sequins/version/gate"
)

// A view is a snapshot of a db for the status. It is immutable, and the objects it points to are safe for concurrent use.
type view struct {
	facts      version.Facts
	versions   []versionView   // of the entries of facts
	serving    content.Content // what is served, or was before a restart
	tried      bool            // its versions were listed, and all have failed through their own fault
	whole      bool            // every partition of the current version has been on some node at least once
	pin        *status.Pin
	unfinished string    // the newest incomplete version, and the reason
	absent     time.Time // since when the source lacks it, as far as that was written; zero: it does not
}

type versionView struct {
	version.Entry
	status         version.Status
	known          record
	differs        string           // how its files in the source differ from those that it was loaded from; "" if they do not
	wrong          string           // what else is wrong with it
	live           *version.Version // nil if not in the set
	verdict        gate.Verdict
	records, bytes int64
	loading        *loading // nil if not being loaded
}

// publish publishes the state of a db for Node.Status and Node.Ready.
func (d *db) publish() {
	d.keeper.seenWhole = d.keeper.seenWhole || d.keeper.isWhole()
	v := view{facts: d.facts.Clone(), serving: d.judge.servedContent(), tried: d.lister.tried(), whole: d.keeper.seenWhole, pin: d.pinStatus(),
		unfinished: d.lister.unfinished, absent: d.memory.state.Absent}
	for _, e := range v.facts.Entries {
		vv := versionView{Entry: e, status: v.facts.Status(e), known: *d.records[e.Input], loading: d.loads.running[e.Input],
			differs: d.lister.last.Differs[e.Input], wrong: cmp.Or(d.lister.wrong[e.Input], d.lister.passedOver(e.Input))}
		if l := d.keeper.live[e.Input]; l != nil {
			vv.live, vv.verdict = l.v, l.judged.verdict
			vv.records, vv.bytes = l.size()
		}
		v.versions = append(v.versions, vv)
	}
	d.view.Store(&v)
}

// served reports whether a version is served, or was before a restart.
func (v *view) served() bool { return v.facts.Current.Name != "" || v.facts.Before().Name != "" }

// read reports whether its versions were listed at least once.
func (v *view) read() bool { return v.facts.Source == version.Known }

// passingAttempts is how many failed attempts for a version count as a permanent failure, if the failures may be temporary.
const passingAttempts = 3

// exhaustedFor is how long the status shows that a connection was refused for want of a file descriptor.
const exhaustedFor = 5 * time.Minute

// Status implements server.Catalog.
func (n *Node) Status() status.Status {
	r := n.health.Report()
	s := status.Status{
		DBs:     make(map[string]status.DB),
		ShardID: n.o.ShardID(), Node: n.o.Name, Build: n.o.Build,
		StartedAt: seconds(n.started), Source: n.o.SourceName,
		SourceErrorSince: seconds(r.Since), RefreshedAt: seconds(r.Refreshed), Warnings: r.Warnings,
	}
	if r.Err != nil {
		s.SourceError = r.Err.Error()
	}
	if keys := n.restart.Load(); keys != nil {
		s.RestartKeys = *keys
	}
	if failed := n.reloadError.Load(); failed != nil {
		s.ReloadError, s.ReloadErrorSince = failed.reason, seconds(failed.at)
	}
	if at := n.accepted.Last(); time.Since(at) < exhaustedFor {
		s.ExhaustedAt = seconds(at)
	}
	if disk := n.o.Metrics.Process.Disk(); disk != nil {
		s.Disk = *disk
	}
	s.Waiting = n.waits()
	if differences := n.differences.Load(); differences != nil {
		s.Differences = *differences
	}
	for _, describe := range n.o.Describe {
		describe(&s)
	}
	var problems []string // of the versions
	for name, d := range *n.catalog.Load() {
		v := d.view.Load()
		problems = append(problems, v.problems(name)...)
		db := d.status(v)
		if f, failing := r.DBs[name]; failing {
			db.Error = fmt.Sprintf("its versions cannot be listed since %s: %v", f.Since.UTC().Format(time.RFC3339), f.Err)
		}
		s.DBs[name] = db
	}
	slices.Sort(problems)
	s.Problems = slices.Concat(s.Problems, slices.Compact(problems))
	return s
}

func (d *db) status(v *view) status.DB {
	s := status.DB{Versions: make(map[string]status.Version, len(v.versions)), Error: v.problem(), Pin: v.pin}
	n := d.node
	for i, vv := range v.versions { // those of one name in the order in which they were found: the status shows the current one, or else the last
		if _, shown := s.Versions[vv.Name]; shown && vv.Name == v.facts.Current.Name && vv.Input != v.facts.Current {
			continue
		}
		vs := status.Version{
			Path:              n.o.Source.Path(d.name, vv.Name),
			TargetReplication: n.o.Replication,
			Nodes:             map[string]status.OnNode{n.o.Name: d.nodeStatus(v, &v.versions[i])},
		}
		if vv.live != nil {
			held, following := vv.live.Held(), vv.live.Info().Following
			vs.NumPartitions, vs.Replicas = len(held), make([]int, len(held))
			for p, here := range held {
				vs.Replicas[p] = following.Replicas(p)
				if here {
					vs.Replicas[p]++
				}
			}
		}
		s.Versions[vv.Name] = vs
	}
	return s
}

// problem returns why a db has nothing to serve; "" if it may have soon.
func (v *view) problem() string {
	switch {
	case v.facts.Current.Name != "" || len(v.facts.Listed) > 0 || !v.read():
		return ""
	case v.unfinished != "":
		return "no version exists yet; " + v.unfinished
	}
	return "there are no versions in the source"
}

func (d *db) nodeStatus(shown *view, v *versionView) status.OnNode {
	s := status.OnNode{
		Name: d.node.o.Name, ShardID: d.node.o.ShardID(),
		CreatedAt: seconds(v.known.created), ActiveAt: seconds(v.known.activeAt),
		Current: v.Input == shown.facts.Current, State: status.State(v.status.String()), Diverged: v.differs != "",
		Partitions: []int{}, Records: v.records, Bytes: v.bytes, Unchanged: v.known.unchanged,
		Detail: d.detail(shown, v), Gate: v.verdict.Checks,
	}
	f, unrecorded := &shown.facts, ""
	if f.Unrecorded && v.Coverage == version.Replicated && v.Verdict == version.Passed && v.Name > f.Current.Name {
		unrecorded = "it is ready, and cannot be recorded in the local store as the version that is served: see the log"
	}
	s.Error = cmp.Or(shown.divergence(v), v.Failure.Reason, unrecorded, v.wrong)
	if v.live != nil {
		info := v.live.Info()
		s.Content = info.Code()
		s.LastModified, s.Partitioner = seconds(info.LastModified), info.Partitioner.String()
		for p, held := range v.live.Held() {
			if held {
				s.Partitions = append(s.Partitions, p)
			}
		}
	}
	loading := v.loading
	for _, other := range shown.versions {
		if other.Name == v.Name && loading == nil {
			loading = other.loading
		}
	}
	if loading != nil {
		s.Progress = loadproc.Progress(loading.snapshot(), time.Now())
	}
	switch {
	case v.isKept(shown):
		s.State = status.Kept
	case v.status == version.Prepared && v.Verdict == version.Held:
		s.State = status.Held
	case v.status == version.Building && loading != nil && loading.turn.Waits(time.Now()) != "":
		s.State = status.Available
	case v.status <= version.Prepared:
		s.State = status.Building
	}
	return s
}

// isKept reports whether a version was replaced by the current one, and stays for a rollback.
func (v *versionView) isKept(shown *view) bool {
	return v.status == version.Prepared && v.Verdict != version.Held && v.Name < shown.facts.Current.Name
}

// detail adds to the state in a few words.
func (d *db) detail(shown *view, v *versionView) string {
	switch {
	case v.Removal == version.Lingering:
		return "other nodes may still ask for it"
	case v.Removal == version.Closing:
		return "waiting for the requests in flight"
	case v.Removal != version.Staying:
		return "being deleted"
	case v.Failure.Waits && v.known.retries.failed > 0:
		r := &v.known.retries
		return fmt.Sprintf("it has failed %s, and is tried again at %s or when its files change", human.Plural(r.failed, "time"), r.next.UTC().Format(time.TimeOnly+"Z"))
	case v.loading != nil:
		return cmp.Or(v.loading.turn.Waits(time.Now()), stages[v.loading.stage.Load()])
	case v.status == version.Available:
		return "on this node's disk, and the source cannot be read"
	case v.status != version.Prepared:
		return ""
	case v.Verdict == version.Held:
		return "held: " + v.verdict.Reason
	case v.isKept(shown):
		return "for a rollback"
	case v.verdict.State == gate.Pending:
		return "prepared, not judged yet: " + v.verdict.Reason
	}
	missing := v.live.Info().Following.Missing(v.live.Held(), d.node.o.MinReplication)
	if len(missing) == 0 {
		return "prepared"
	}
	return "prepared, waiting for other nodes to hold " + human.Plural(len(missing), "partition") + ": " + human.Ranges(missing)
}

var stages = map[int32]string{
	starting:       "waiting for other nodes to be known",
	waitingForTurn: "waiting for other databases' loads",
	planning:       "looking at the files",
	copying:        "loading",
	fetching:       "copying from other nodes what they load",
}

// seconds rounds a time to seconds, for the status JSON.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// MayExist implements server.Catalog. A node that was never able to read the source cannot know that a
// db does not exist, and another node may have found the db earlier.
func (n *Node) MayExist(db []byte) bool {
	return !n.listed.Load() || n.o.Cluster.Knows(string(db))
}

// wholeTimeout is how long a started node waits for other nodes with partitions that no node has yet,
// as when all nodes start together, before it is ready without them.
const wholeTimeout = 10 * time.Second

// Events implements server.Catalog.
func (n *Node) Events(db string) []status.Event { return n.o.Events.Last(db) }

// Ready implements server.Catalog.
func (n *Node) Ready(db string) (bool, string) {
	if db == "" || !n.admitted.Load() {
		return unready(n.waits(), time.Now())
	}
	d := (*n.catalog.Load())[db]
	if d == nil {
		return false, "there is no database " + db
	}
	v := d.view.Load()
	if v.facts.Current.Name != "" {
		return true, ""
	}
	w, _ := d.loadWait(v)
	w.Blocks = true
	return unready([]status.Wait{w}, time.Now())
}
