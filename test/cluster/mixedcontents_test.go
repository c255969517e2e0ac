//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-zookeeper/zk"

	"sequins/test/checker"
	"sequins/test/expect"
)

// Tags of the files of versions under TestAllFaults. Those that replace them have other letters; files with approvedTag are held until they are approved.
const (
	firstTag    = "-a"
	approvedTag = "-h"
)

// everyRule is a gate by which the data passes, and what gateBreaks makes of it does not.
const everyRule = `[gate]
min_records = 700
max_shrink = 0.5
max_growth = 2.0
max_missing = 0.5
max_value_size = "500B"
required_keys = {key-0000000 = "^v"}
`

// ofTag returns the data that has a tag.
func (d dataset) ofTag(tag string) dataset {
	if tag == approvedTag {
		d = d.bad()
	}
	return d.tagged(tag)
}

// gateBreaks are what makes data that the gate holds, by the rule that it breaks.
var gateBreaks = []struct {
	rule  string
	apply func(d dataset) dataset
}{
	{"max_shrink", func(d dataset) dataset { return d.bad() }},
	{"min_records", func(d dataset) dataset { d.keys = 600; return d }},
	{"max_growth", func(d dataset) dataset { d.keys *= 8; return d }},
	{"max_value_size", func(d dataset) dataset { d.pad = 500; return d }},
	{"required_keys", func(d dataset) dataset { d.swap = swap{out: d.key(0), in: "a"}; return d }},
	{"max_missing", func(d dataset) dataset { d.renamed = true; return d }},
}

// contentFaults are faults of what is stored: files replaced under their names, sources, disks and znodes.
func (n *mixer) contentFaults() []fault {
	return []fault{
		{"files are replaced by ones of equal sizes", n.replace, n.lookAgain},
		{"files are replaced twice", func() { n.replace(); n.wait(pieceTime * 4); n.replace() }, n.lookAgain},
		{"the source is replaced by an equal copy", n.copySource, n.lookAgain},
		n.wipe(n.pick()),
		{emptyZooKeeper, n.emptyZooKeeper, func() {}},
	}
}

// verdicts say by _PIN which versions may be served.
func (n *mixer) verdicts() []fault {
	return []fault{
		{"the version before is pinned", func() { n.pinFile(fmt.Sprintf("version = %q", n.before())) }, n.unpin},
		{"the newest version is excluded", func() { n.before(); n.pinFile(fmt.Sprintf("exclude = [%q]", versionName(n.version))) }, n.unpin},
		n.approval(),
	}
}

// linkSource makes the source a symbolic link to its files.
func (n *mixer) linkSource() {
	files := n.c.source + ".1"
	expect.NoError(n.t, errors.Join(os.Rename(n.c.source, files), os.Symlink(files, n.c.source)))
}

// copySource has the source be a copy of its files with other times, as one step.
func (n *mixer) copySource() {
	n.endJob()
	old, err := os.Readlink(n.place())
	expect.NoError(n.t, err)
	files := fmt.Sprintf("%s.%d", n.c.source, n.r.Now())
	link := files + ".link"
	copied := run("cp -R " + old + " " + files) // with new times, and pipes as pipes
	expect.NoError(n.t, errors.Join(copied, os.Symlink(files, link), os.Rename(link, n.place())))
}

// replace replaces the files of the newest good version.
func (n *mixer) replace() {
	n.endJob()
	version := versionName(n.version)
	tag := n.tags[version]
	if tag == approvedTag {
		return
	}
	tag = string([]byte{'-', 'a' + (tag[1]-'a'+1)%7})
	n.say("the files of " + version + " get the tag " + tag)
	n.r.publishContent(version, n.c.data.tagged(tag))
	n.tags[version] = tag
	n.c.data.tagged(tag).rewrite(n.t, n.place(), version)
	n.c.refresh(n.t)
}

// lookAgain has the members look at what the source has.
func (n *mixer) lookAgain() { n.c.refresh(n.t) }

// publishHeld publishes data that the gate holds. In the history it is not published: who reads it reads what does not exist.
func (n *mixer) publishHeld(apply func(d dataset) dataset) {
	temp, name := n.t.TempDir(), versionName(n.version+1)
	apply(n.c.data).publish(n.t, temp, name)
	n.publishAs(filepath.Join(temp, db, name), n.anyName("held"))
}

// approval publishes a version that the gate holds, and approves it.
func (n *mixer) approval() fault {
	version := ""
	return fault{"a version is held and approved", func() {
		n.endJob()
		n.removeHeld()
		n.version++
		version = versionName(n.version)
		n.tags[version] = approvedTag
		n.c.data.ofTag(approvedTag).publish(n.t, n.place(), version)
	}, func() {
		n.r.publishContent(version, n.c.data.ofTag(approvedTag))
		n.pinFile(fmt.Sprintf("approve = [%q]", version))
	}}
}

// removeHeld removes the versions that the gate holds from the source: next to what is approved, some of them are not too small, and pass.
func (n *mixer) removeHeld() {
	held, err := filepath.Glob(filepath.Join(n.place(), db, "*-held*"))
	for _, dir := range held {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	expect.NoError(n.t, err)
}

// pinFile writes _PIN, by which members may go back.
func (n *mixer) pinFile(text string) {
	n.endJob()
	n.say("_PIN: " + text)
	n.back = true
	n.r.note(checker.Back, nil, text)
	path := filepath.Join(n.place(), db, "_PIN")
	expect.NoError(n.t, errors.Join(os.WriteFile(path+".tmp", []byte(text), 0o644), os.Rename(path+".tmp", path)))
}

// before returns the name of the version before the newest. There is one afterwards.
func (n *mixer) before() string {
	if n.version == 1 {
		n.publish()
	}
	return versionName(n.version - 1)
}

func (n *mixer) unpin() {
	expect.NoError(n.t, os.Remove(filepath.Join(n.place(), db, "_PIN")))
}

// wipe replaces the disk of a member.
func (n *mixer) wipe(m *member) fault {
	f := fault{"a disk is replaced: " + m.name, func() {
		n.kill(m)
		n.back = true
		n.r.note(checker.Back, m, "its disk is lost")
		expect.NoError(n.t, os.RemoveAll(m.config.Store))
	}, func() { n.start(m) }}
	return n.ifUp(m, f)
}

// emptyZooKeeper removes all that the members have written, and ends their sessions.
func (n *mixer) emptyZooKeeper() {
	root := "/" + n.c.name
	for range 5 { // members write meanwhile
		if n.look.remove(root) == nil {
			break
		}
	}
	n.c.zk.expire(n.t)
}

// remove removes a znode and those below it.
func (l *look) remove(path string) error {
	children, _, err := l.conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, child := range children {
		err = errors.Join(err, l.remove(path+"/"+child))
	}
	if derr := l.conn.Delete(path, -1); !errors.Is(derr, zk.ErrNoNode) {
		err = errors.Join(err, derr)
	}
	return err
}
