//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/expect"
	"sequins/test/process"
)

// TestAllFaults has a cluster go through everything that versions, sources, ZooKeeper and whole restarts can do to it,
// in an order that the seed decides, each time together with a fault of ZooKeeper and a new version, while clients
// read without pause. After the last fault every node has to come to the newest good version.
func TestAllFaults(tt *testing.T) {
	tt.Parallel()
	t := process.Recap(tt)
	t.Logf("to see the same faults again: go test ./test/cluster -run %s -args -seed %d", t.Name(), *seed)
	z := startZookeeper(t, 3)
	c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 8, tag: firstTag}, members: 5, replication: 2,
		extra: "db_remove_timeout = \"1ms\"\nkeep_versions = 2\n", sections: everyRule})
	n := &mixer{nemesis: &nemesis{t: t, c: c, version: 1, rng: rand.New(rand.NewPCG(*seed, 1))}, tags: map[string]string{versionName(1): firstTag}}
	n.linkSource()
	for _, m := range c.members {
		m.config.Extra = strings.Replace(m.config.Extra, "require_success_file = true", `require_success_file = "auto"`, 1)
	}
	c.begin(t, versionName(1))
	n.look = z.look(t)
	c.waitWhole(t, n.look, versionName(1))
	n.r = record(t, c, versionName(1), versionName(1)+firstTag)
	n.r.publishContent(versionName(1), c.data)
	defer n.r.judge(t, "history-all-faults")

	for begin := time.Now(); ; {
		n.playAll()
		if time.Since(begin) >= *faultsFor {
			break
		}
	}
}

// playAll plays each fault, in any order. After the last one all members serve the newest version, as the source has it.
func (n *mixer) playAll() {
	n.t.Helper()
	for _, faults := range n.rounds() {
		n.play(faults)
		n.recover()
		if n.back {
			n.calm()
			n.r.note(checker.Ahead, nil, "")
			n.back = false
		}
		if n.tags[versionName(n.version)] == approvedTag { // next to it, other versions are not too small
			n.publish()
			n.calm()
		}
	}
	n.calm()
	newest := versionName(n.version)
	n.c.refresh(n.t)
	data := n.c.data.ofTag(n.tags[newest])
	n.c.waitReplaced(n.t, n.c.members, data, newest)
	n.c.waitContent(n.t, n.c.members, data, newest) // every key, which takes its time beside the clients
}

// A mixer is a nemesis with further faults: of versions, of the source, and of all members at the same time.
type mixer struct {
	*nemesis
	away bool              // the source is moved away
	job  chan error        // gets the end of the job that writes in place; nil: none runs
	tags map[string]string // of the files of each good version
	back bool              // members may serve older versions than before
}

// place is where jobs find the directory of the source.
func (n *mixer) place() string {
	if n.away {
		return n.c.source + ".away"
	}
	return n.c.source
}

// rounds are all faults, in any order. Bad versions come beside others, but not beside verdicts: next to what is approved, some are not bad.
func (n *mixer) rounds() (rounds [][]fault) {
	shuffled := func(faults []fault) []fault {
		n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		return faults
	}
	for _, f := range shuffled(append(n.wholeFaults(), n.contentFaults()...)) {
		rounds = append(rounds, []fault{f})
	}
	for i, bad := range shuffled(n.badVersions()) {
		r := &rounds[i%len(rounds)]
		*r = append(*r, bad)
	}
	for _, f := range n.verdicts() {
		rounds = append(rounds, []fault{f})
	}
	n.rng.Shuffle(len(rounds), func(i, j int) { rounds[i], rounds[j] = rounds[j], rounds[i] })
	return rounds
}

// wholeFaults are faults of members, of all together, and of the whole source.
func (n *mixer) wholeFaults() []fault {
	restart := func(name string, how func(m *member)) fault {
		return fault{name, func() { n.stopAll(how); n.startMembers() }, func() {}}
	}
	return []fault{
		{"a job writes in place", n.beginJob, n.endJob},
		{"the source vanishes", n.takeAway, n.bringBack},
		{"the source is empty", n.unmount, n.bringBack},
		restart("all members restart", n.end),
		restart("all members are killed", n.kill),
		{"all members restart, the source is away", func() { n.stopAll(n.end); n.takeAway(); n.startMembers() }, n.bringBack},
		{lateZooKeeper, func() { n.stopAll(n.end); n.c.zk.killAll(n.t); n.startMembers() },
			func() { n.c.zk.restartAll(n.t) }},
		n.memberFault(n.pick()),
	}
}

// The names of faults that come without another one of ZooKeeper.
const (
	lateZooKeeper  = "all members restart, ZooKeeper is late"
	emptyZooKeeper = "ZooKeeper is emptied"
)

// badVersions publish versions that are never served.
func (n *mixer) badVersions() (faults []fault) {
	for _, b := range breaks {
		faults = append(faults, fault{"a version with " + b.name, func() { n.publishBroken(b.apply) }, func() {}})
	}
	for _, b := range gateBreaks {
		faults = append(faults, fault{"a version that breaks " + b.rule, func() { n.publishHeld(b.apply) }, func() {}})
	}
	return faults
}

// play does some faults, one of ZooKeeper and an upgrade, in any order, and undoes them. Where the first is one of ZooKeeper, it is the only one: a
// session that is cut off while its znodes are removed lives on, and finds that out within a minute.
func (n *mixer) play(faults []fault) {
	n.t.Helper()
	first := faults[0].name
	if first != lateZooKeeper && first != emptyZooKeeper {
		faults = append(faults, n.zookeeperFault())
	}
	var names []string
	for _, f := range faults {
		names = append(names, f.name)
	}
	n.t.Logf("%v: %s", n.r.Now().Round(time.Millisecond), strings.Join(names, "; "))
	faults = append(faults, fault{"publish", n.publish, func() {}})
	n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		n.say("do: " + f.name)
		f.do()
		n.wait(600 * time.Millisecond)
	}
	n.wait(2 * sessionTimeout)
	n.rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, f := range faults {
		n.say("undo: " + f.name)
		f.undo()
		n.wait(600 * time.Millisecond)
	}
}

// next is the name of the next good version.
func (n *mixer) next() string {
	n.version++
	version := versionName(n.version)
	n.tags[version] = firstTag
	n.r.publishContent(version, n.c.data)
	return version
}

// publish puts a version into the source, also while that is moved away. It waits for a job that writes in place,
// because the newest version must be complete at the end.
func (n *mixer) publish() {
	n.endJob()
	n.c.data.publish(n.t, n.place(), n.next())
}

// beginJob has the next version written file by file where nodes look for it.
func (n *mixer) beginJob() {
	job := n.c.data.newJob(n.t, n.place(), n.next(), true)
	n.job = make(chan error, 1)
	go func(end chan<- error) { end <- job.run() }(n.job)
}

func (n *mixer) endJob() {
	if n.job == nil {
		return
	}
	if err := <-n.job; err != nil {
		n.t.Error(err)
	}
	n.job = nil
}

// breaks are what makes a version that can never be served.
var breaks = []struct {
	name  string
	apply func(dir string) error
}{
	{"half a file", func(dir string) error {
		path := filepath.Join(dir, "part-r-00003")
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, st.Size()/2)
	}},
	{"no files", func(dir string) error {
		files, err := filepath.Glob(filepath.Join(dir, "part-*"))
		for _, f := range files {
			err = errors.Join(err, os.Remove(f))
		}
		return err
	}},
	{"a directory as its marker", func(dir string) error {
		marker := filepath.Join(dir, "_SUCCESS")
		return errors.Join(os.Remove(marker), os.Mkdir(marker, 0o755))
	}},
	{"a FIFO among its files", func(dir string) error {
		path := filepath.Join(dir, "part-r-00005")
		return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
	}},
}

// publishBroken puts a version into the source that stays broken, at any place among the good ones.
func (n *mixer) publishBroken(apply func(dir string) error) {
	temp := n.t.TempDir()
	name := versionName(n.version + 1)
	n.c.data.publish(n.t, temp, name)
	dir := filepath.Join(temp, db, name)
	expect.NoError(n.t, apply(dir))
	n.publishAs(dir, n.anyName("broken"))
}

// anyName returns a name for a version that is not to be served, at any place among the good ones.
func (n *mixer) anyName(why string) string {
	name := fmt.Sprintf("%s-%s%d", versionName(1+n.rng.IntN(n.version)), why, n.rng.IntN(100_000))
	if n.rng.IntN(2) == 0 {
		name = "w" + name // above every good one, for good
	}
	return name
}

// publishAs moves a version into the source.
func (n *mixer) publishAs(dir, name string) {
	n.say("it is called " + name)
	expect.NoError(n.t, os.Rename(dir, filepath.Join(n.place(), db, name)))
}

func (n *mixer) takeAway() {
	expect.NoError(n.t, os.Rename(n.c.source, n.c.source+".away"))
	n.away = true
}

// unmount leaves an empty directory in the place of the source.
func (n *mixer) unmount() {
	n.takeAway()
	expect.NoError(n.t, os.Mkdir(n.c.source, 0o755))
}

func (n *mixer) bringBack() {
	if err := os.Remove(n.c.source); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	expect.NoError(n.t, os.Rename(n.c.source+".away", n.c.source))
	n.away = false
}

// end asks a member to end.
func (n *mixer) end(m *member) {
	n.r.note(checker.Down, m, "terminate")
	m.node.Signal(n.t, syscall.SIGTERM)
}

// stopAll ends all members at about the same time.
func (n *mixer) stopAll(how func(m *member)) {
	n.r.note(checker.Unsafe, nil, "all members restart")
	for _, m := range n.c.members {
		how(m)
	}
	for _, m := range n.c.members {
		m.node.WaitExit(n.t)
		m.up = false
	}
}

// startMembers starts all members at the same time. They may have to wait for ZooKeeper.
func (n *mixer) startMembers() {
	for _, m := range n.c.members {
		n.r.note(checker.Start, m, "")
		m.launch(n.t)
	}
	for _, m := range n.c.members {
		m.waitLive(n.t)
		n.r.note(checker.Up, m, "")
	}
}
