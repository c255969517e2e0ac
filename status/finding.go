package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
)

// LevelNote is the level of a Finding that does not affect the health.
const LevelNote = "note"

// Finding is something that is wrong with a node or its cluster, or that somebody should look at.
type Finding struct {
	Level string // LevelBad, LevelWarn or LevelNote
	// Text is one line, which names what it is about, with the reason.
	Text  string
	Since time.Time // zero if unknown
	// Runbook is the anchor of its section in docs/RUNBOOK.md.
	Runbook string

	health string // what the health says of it, if it is the first
}

// Line returns the text of a finding, and for how long it has been so.
func (f Finding) Line(now time.Time) string {
	if f.Since.IsZero() {
		return f.Text
	}
	return f.Text + " (for " + human.Duration(now.Sub(f.Since)) + ")"
}

// Sections of the runbook that do not belong to an alert. The section of an alert has its name, in lower case.
const (
	RunbookNotReady = "not-ready"
	RunbookEmpty    = "no-databases"
	RunbookPin      = "a-version-against-the-pin"
	RunbookBadPin   = "a-pin-that-cannot-be-read"
	RunbookRestart  = "keys-that-need-a-restart"
	RunbookLeftOut  = "entries-that-are-left-out"
)

// Findings returns what is wrong and what somebody should look at, in the order of importance: the first that is not a
// note is the health of a node that is ready. It does not say that a node is not ready: see Health and Waiting.
func (st *Status) Findings() []Finding {
	c := takeCensus(st)
	return slices.Concat(c.urgent(), st.ofCluster(), st.ofSource(), c.unlisted.findings(), st.notes())
}

// OfNode returns the findings that are not about single dbs.
func (st *Status) OfNode() []Finding {
	return slices.Concat(st.ofCluster(), st.ofSource(), st.notes())
}

// census has the dbs of a node by their health.
type census struct {
	all                                           int
	served                                        int  // with a current version
	starting                                      bool // the node waits for something before it is ready
	idle, unwanted, held, failed, underreplicated group
	lost, unlisted                                group
}

// group is dbs with the same fault. In its texts, %s is replaced by the names of the dbs, and %d by their number.
type group struct {
	names                        []string
	level, health, text, runbook string
}

// takeCensus counts the dbs of a node, from its own point of view.
func takeCensus(st *Status) *census {
	all := human.Plural(len(st.DBs), "database")
	c := &census{all: len(st.DBs), starting: len(Blocking(st.Waiting)) > 0,
		lost:            group{level: LevelBad, health: "Serving " + all + "; %d with partitions that no node holds.", text: "No node holds some partitions of %s.", runbook: "sequinspartitionsmissing"},
		idle:            group{level: LevelWarn, text: "No version of %s is served.", runbook: "sequinsnotserving"},
		unwanted:        group{level: LevelBad, health: "Serving " + all + "; %d from a version that is excluded, or not the one that is pinned, as no other is ready.", text: "The pin does not allow the version that is served of %s.", runbook: RunbookPin},
		held:            group{level: LevelWarn, health: "Serving " + all + "; %d with a newer version that the gate holds.", text: "The gate holds a newer version of %s.", runbook: "sequinsversionheld"},
		failed:          group{level: LevelWarn, health: "Serving " + all + "; %d with a version that could not be loaded.", text: "A version of %s could not be loaded.", runbook: "sequinsversionfailed"},
		underreplicated: group{level: LevelWarn, health: "Serving " + all + "; %d with partitions that too few nodes hold.", text: "Too few nodes hold some partitions of %s.", runbook: "sequinspartitionsunderreplicated"},
		unlisted:        group{level: LevelWarn, health: "Serving " + all + "; %d that cannot be listed in the source.", text: "The source cannot list %s.", runbook: "sequinssourceunreachable"},
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		c.add(name, st.DBs[name], st.Node)
	}
	c.idle.health = fmt.Sprintf("Serving %d of %s.", c.served, all)
	return c
}

func (c *census) add(name string, db DB, node string) {
	in := func(g *group, member bool) {
		if member {
			g.names = append(g.names, name)
		}
	}
	current := db.Current(node)
	in(&c.idle, current == "")
	in(&c.failed, db.Failed(node))
	if current == "" {
		return
	}
	c.served++
	v := db.Versions[current]
	in(&c.lost, v.MissingPartitions > 0)
	in(&c.underreplicated, v.MissingPartitions == 0 && v.UnderreplicatedPartitions > 0)
	in(&c.unwanted, !db.PinOn(node, node).Allows(current))
	in(&c.held, db.Holds(node) != "")
	in(&c.unlisted, db.Error != "")
}

// urgent returns what is wrong with what is served.
func (c *census) urgent() []Finding {
	if c.all == 0 && c.starting {
		return nil // it is not known yet
	}
	if c.all == 0 {
		return []Finding{{Level: LevelWarn, Text: "There is no database in the source.", Runbook: RunbookEmpty, health: "Ready, but there is no database in the source."}}
	}
	var all []Finding
	for _, g := range []group{c.lost, c.idle, c.unwanted, c.held, c.failed, c.underreplicated} {
		all = append(all, g.findings()...)
	}
	return all
}

// findings returns the finding of a group that has members.
func (g group) findings() []Finding {
	n := len(g.names)
	if n == 0 {
		return nil
	}
	health := strings.ReplaceAll(g.health, "%d", human.Count(int64(n)))
	return []Finding{{Level: g.level, Text: strings.ReplaceAll(g.text, "%s", human.Some(g.names)), Runbook: g.runbook, health: health}}
}

// maxSilent limits the nodes without an answer that have a finding each.
const maxSilent = 5

// ofCluster returns what is wrong between the nodes.
func (st *Status) ofCluster() (all []Finding) {
	serving := "Serving " + human.Plural(len(st.DBs), "database")
	for _, text := range st.Problems {
		f := Finding{Level: LevelBad, Text: text, Runbook: "sequinsclustersettings", health: "The nodes are not one cluster: " + text + "."}
		if st.ZooKeeper == nil { // a single node has only problems with its versions
			f.health = serving + ", with a problem: " + text + "."
		}
		all = append(all, f)
	}
	if z := st.ZooKeeper; z != nil && !z.Connected {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("ZooKeeper cannot be reached", z.Error), Since: z.Since, Runbook: "sequinszookeeperlost",
			health: serving + ", but ZooKeeper cannot be reached."})
	}
	silent := 0
	for _, name := range slices.Sorted(maps.Keys(st.Peers)) {
		p := st.Peers[name]
		if p.Error == "" {
			continue
		}
		if silent++; silent <= maxSilent {
			all = append(all, Finding{Level: LevelWarn, Text: withReason(name+" did not answer", p.Error), Runbook: "sequinsdown"})
		}
	}
	for i := range all {
		if all[i].Runbook == "sequinsdown" {
			all[i].health = fmt.Sprintf("%s, but %s did not answer.", serving, human.Plural(silent, "node"))
		}
	}
	if more := silent - maxSilent; more > 0 {
		all = append(all, Finding{Level: LevelWarn, Text: human.Plural(more, "more node") + " did not answer.", Runbook: "sequinsdown"})
	}
	return all
}

// ofSource returns what is wrong with the source, the process and the configuration.
func (st *Status) ofSource() (all []Finding) {
	serving := "Serving " + human.Plural(len(st.DBs), "database")
	all = st.ofKeys(time.Now())
	if st.SourceError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("The source cannot be read", st.SourceError), Since: st.SourceErrorSince, Runbook: "sequinssourceunreachable",
			health: serving + ", but the source cannot be read."})
	}
	for i, d := range st.Differences {
		f := Finding{Level: LevelNote, Text: d.String(), Runbook: "sequinssettingsdiffer"}
		if faults := Faults(st.Differences); len(Faults(st.Differences[i:i+1])) > 0 {
			f.Level, f.health = LevelWarn, serving+", but the configurations of the nodes differ: "+differ(faults)+"."
		}
		all = append(all, f)
	}
	if !st.ExhaustedAt.IsZero() {
		all = append(all, Finding{Level: LevelWarn, Text: "The process was out of file descriptors, last at " + st.ExhaustedAt.UTC().Format(time.RFC3339) + ", and refused clients.", Runbook: "sequinsdescriptors",
			health: serving + ", but clients are refused: the process is out of file descriptors."})
	}
	all = append(all, st.ofPins()...)
	if st.ReloadError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("The last reload of the configuration has failed", oneLine(st.ReloadError)),
			Since: st.ReloadErrorSince, Runbook: "sequinsreloadfailed", health: serving + ", but the last reload of the configuration has failed."})
	}
	return all
}

// expiresSoon is how long before a certificate expires the status says so, which is when the alert SequinsCertificateExpires fires.
const expiresSoon = 7 * 24 * time.Hour

// ofKeys returns what is wrong with the certificate and the tokens.
func (st *Status) ofKeys(now time.Time) (all []Finding) {
	serving := "Serving " + human.Plural(len(st.DBs), "database")
	if c := st.Certificate; c.Error != "" {
		all = append(all, Finding{Level: LevelWarn, Text: "The new certificates are not in use: " + oneLine(c.Error), Runbook: "sequinscertificateexpires",
			health: serving + ", but the new certificates are not in use."})
	}
	switch left := st.Certificate.Expires.Sub(now); {
	case st.Certificate.Expires.IsZero():
	case left <= 0:
		all = append(all, Finding{Level: LevelBad, Text: "The certificate of this node has expired.", Since: st.Certificate.Expires, Runbook: "sequinscertificateexpires",
			health: "The certificate of this node has expired: clients and other nodes refuse it."})
	case left < expiresSoon:
		all = append(all, Finding{Level: LevelNote, Text: "The certificate of this node expires in " + human.Duration(left) + ".", Runbook: "sequinscertificateexpires"})
	}
	if st.TokensError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: "The tokens file is not good, and the former tokens are in use: " + oneLine(st.TokensError), Runbook: "sequinsreloadfailed",
			health: serving + ", but the tokens file is not good."})
	}
	return all
}

// badPin begins the warnings of a file _PIN that cannot be read.
const badPin = "_PIN of "

// ofPins returns which decisions of people are not known.
func (st *Status) ofPins() (all []Finding) {
	for _, text := range st.Warnings {
		if strings.HasPrefix(text, badPin) {
			all = append(all, Finding{Level: LevelWarn, Text: oneLine(text), Runbook: RunbookBadPin,
				health: "Serving " + human.Plural(len(st.DBs), "database") + ", but a file _PIN cannot be read."})
		}
	}
	return all
}

// oneLine returns an error of several lines as one.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// notes returns what does not affect the health.
func (st *Status) notes() (all []Finding) {
	if st.Disk.Low {
		all = append(all, Finding{Level: LevelNote, Text: fmt.Sprintf("The disk of this node has %s of %s free.", human.Size(st.Disk.Free), human.Size(st.Disk.Bytes)), Runbook: "sequinsdiskfull"})
	}
	if len(st.RestartKeys) > 0 {
		all = append(all, Finding{Level: LevelNote, Text: "Keys of the configuration have changed and need a restart: " + strings.Join(st.RestartKeys, ", ") + ".", Runbook: RunbookRestart})
	}
	for _, text := range st.Warnings {
		if !strings.HasPrefix(text, badPin) {
			all = append(all, Finding{Level: LevelNote, Text: text, Runbook: RunbookLeftOut})
		}
	}
	return all
}

// withReason returns a sentence with a reason that may be unknown.
func withReason(text, reason string) string {
	if reason == "" {
		return text + "."
	}
	return text + ": " + reason
}
