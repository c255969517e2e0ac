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
	// Text is one line, which names what it is about, with the reason. It is empty for what is wrong with single databases or
	// other nodes, each of which says it itself: the health counts them.
	Text  string
	Since time.Time // zero if unknown
	// Runbook is the anchor of its section in docs/RUNBOOK.md. The section of an alert has its name, in lower case.
	Runbook string

	health string // what the health says of it, if it is the first, and of dbs also behind others of dbs; "" for the beginning of Text
}

// Line returns the text of a finding, and for how long it has been so.
func (f Finding) Line(now time.Time) string {
	if f.Since.IsZero() {
		return f.Text
	}
	return f.Text + " (for " + human.Duration(now.Sub(f.Since)) + ")"
}

// Findings returns what is wrong and what somebody should look at, in the order of importance: the first that is not a
// note is the health of a node that is ready. It does not say that a node is not ready: see Health and Waiting.
func (st *Status) Findings() []Finding {
	return slices.Concat(st.ofDBs(), st.ofCluster(), st.ofSource(), st.ofServed(unlistable), st.notes())
}

// Details returns the findings that say more than the health.
func (st *Status) Details() []Finding {
	return slices.DeleteFunc(st.Findings(), func(f Finding) bool { return f.Text == "" })
}

// says returns what the health says of a finding, if it is the first: by default, its text without the reason.
func (st *Status) says(f Finding) string {
	if f.health != "" {
		return f.health
	}
	what, _, _ := strings.Cut(strings.TrimSuffix(f.Text, "."), ": ")
	if rest, found := strings.CutPrefix(what, "The "); found {
		what = "the " + rest
	}
	return st.serving() + ", but " + what + "."
}

func (st *Status) serving() string { return "Serving " + human.Plural(len(st.DBs), "database") }

// fault is something that can be wrong with a db that a node serves.
type fault struct {
	level, runbook string
	text           string // follows the number of dbs in the health
	found          func(db DB, node string) bool
}

// faults are in the order of importance; unlistable is less important than what is wrong with the source.
var (
	faults = []fault{
		{LevelBad, "sequinspartitionsmissing", "with partitions that no node holds",
			func(db DB, node string) bool { return db.Versions[db.Current(node)].MissingPartitions > 0 }},
		{LevelBad, "a-version-against-the-pin", "from a version that is excluded, or not the one that is pinned, as no other is ready",
			func(db DB, node string) bool { return !db.PinOn(node, node).Allows(db.Current(node)) }},
		{LevelWarn, "sequinsversionheld", "with a newer version that the gate holds", DB.holds},
		{LevelWarn, "sequinsversionfailed", "with a version that could not be loaded", DB.Failed},
		{LevelWarn, "sequinspartitionsunderreplicated", "with partitions that too few nodes hold",
			func(db DB, node string) bool { return db.Versions[db.Current(node)].UnderreplicatedPartitions > 0 }},
	}
	unlistable = fault{LevelWarn, "sequinssourceunreachable", "that cannot be listed in the source", func(db DB, _ string) bool { return db.Error != "" }}
)

func (st *Status) ofServed(f fault) []Finding {
	n := 0
	for _, db := range st.DBs {
		if db.Current(st.Node) != "" && f.found(db, st.Node) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []Finding{{Level: f.level, Runbook: f.runbook, health: st.serving() + "; " + human.Count(int64(n)) + " " + f.text + "."}}
}

// ofDBs returns what is wrong with the dbs, from the node's own point of view.
func (st *Status) ofDBs() []Finding {
	if len(st.DBs) == 0 {
		if len(Blocking(st.Waiting)) > 0 {
			return nil // it is not known yet
		}
		return []Finding{{Level: LevelWarn, Text: "There is no database in the source.", Runbook: "no-databases", health: "Ready, but there is no database in the source."}}
	}
	all, served := st.ofServed(faults[0]), 0
	for _, db := range st.DBs {
		if db.Current(st.Node) != "" {
			served++
		}
	}
	if served < len(st.DBs) {
		all = append(all, Finding{Level: LevelWarn, Runbook: "sequinsnotserving", health: fmt.Sprintf("Serving %d of %s.", served, human.Plural(len(st.DBs), "database"))})
	}
	for _, f := range faults[1:] {
		all = append(all, st.ofServed(f)...)
	}
	return all
}

// ofCluster returns what is wrong between the nodes.
func (st *Status) ofCluster() (all []Finding) {
	for _, text := range st.Problems {
		f := Finding{Level: LevelBad, Text: text, Runbook: "sequinsclustersettings", health: "The nodes are not one cluster: " + text + "."}
		if st.ZooKeeper == nil { // a single node has only problems with its versions
			f.health = st.serving() + ", with a problem: " + text + "."
		}
		all = append(all, f)
	}
	if z := st.ZooKeeper; z != nil && !z.Connected {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("ZooKeeper cannot be reached", z.Error), Since: z.Since, Runbook: "sequinszookeeperlost"})
	}
	silent := 0
	for _, p := range st.Peers {
		if p.Error != "" {
			silent++
		}
	}
	if silent > 0 {
		all = append(all, Finding{Level: LevelWarn, Runbook: "sequinsdown", health: fmt.Sprintf("%s, but %s did not answer.", st.serving(), human.Plural(silent, "node"))})
	}
	return all
}

// ofSource returns what is wrong with the source, the process and the configuration.
func (st *Status) ofSource() (all []Finding) {
	all = st.ofKeys(time.Now())
	if st.SourceError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("The source cannot be read", st.SourceError), Since: st.SourceErrorSince, Runbook: "sequinssourceunreachable"})
	}
	for _, d := range st.Differences {
		level := LevelWarn
		if !d.IsFault() {
			level = LevelNote
		}
		all = append(all, Finding{Level: level, Text: d.String(), Runbook: "sequinssettingsdiffer"})
	}
	for _, text := range st.Warnings {
		if strings.HasPrefix(text, badPin) {
			all = append(all, Finding{Level: LevelWarn, Text: oneLine(text), Runbook: "a-pin-that-cannot-be-read"})
		}
	}
	if st.ReloadError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: withReason("The last reload of the configuration has failed", oneLine(st.ReloadError)),
			Since: st.ReloadErrorSince, Runbook: "sequinsreloadfailed"})
	}
	return all
}

// expiresSoon is how long before a certificate expires the status says so, which is when the alert SequinsCertificateExpires fires.
const expiresSoon = 7 * 24 * time.Hour

// ofKeys returns what is wrong with the certificate and the tokens.
func (st *Status) ofKeys(now time.Time) (all []Finding) {
	if c := st.Certificate; c.Error != "" {
		all = append(all, Finding{Level: LevelWarn, Text: "The new certificates are not in use: " + oneLine(c.Error), Runbook: "sequinscertificateexpires"})
	}
	switch left := st.Certificate.Expires.Sub(now); {
	case st.Certificate.Expires.IsZero():
	case left <= 0:
		all = append(all, Finding{Level: LevelBad, Text: "The certificate of this node has expired.", Since: st.Certificate.Expires, Runbook: "sequinscertificateexpires"})
	case left < expiresSoon:
		all = append(all, Finding{Level: LevelNote, Text: "The certificate of this node expires in " + human.Duration(left) + ".", Runbook: "sequinscertificateexpires"})
	}
	if st.TokensError != "" {
		all = append(all, Finding{Level: LevelWarn, Text: "The tokens file is not good, and the former tokens are in use: " + oneLine(st.TokensError), Runbook: "sequinsreloadfailed"})
	}
	return all
}

// badPin begins the warnings of a file _PIN that cannot be read.
const badPin = "_PIN of "

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// notes returns what does not affect the health.
func (st *Status) notes() (all []Finding) {
	if st.Disk.Low {
		all = append(all, Finding{Level: LevelNote, Text: fmt.Sprintf("The disk of this node has %s of %s free.", human.Size(st.Disk.Free), human.Size(st.Disk.Bytes)), Runbook: "sequinsdiskfull"})
	}
	if len(st.RestartKeys) > 0 {
		all = append(all, Finding{Level: LevelNote, Text: "Keys of the configuration have changed and need a restart: " + strings.Join(st.RestartKeys, ", ") + ".", Runbook: "keys-that-need-a-restart"})
	}
	for _, text := range st.Warnings {
		if !strings.HasPrefix(text, badPin) {
			all = append(all, Finding{Level: LevelNote, Text: text, Runbook: "entries-that-are-left-out"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		all = append(all, st.DBs[name].Notes()...)
	}
	return all
}

// Notes returns what does not affect the health of a db.
func (d DB) Notes() (all []Finding) {
	for _, text := range d.Hints {
		all = append(all, Finding{Level: LevelNote, Text: text, Runbook: "partitions-that-are-divided-unevenly"})
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
