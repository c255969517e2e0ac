package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sequins/client"
	"sequins/internal/human"
	"sequins/internal/nearest"
	"sequins/internal/term"
	"sequins/observe/status"
	"sequins/shard"
)

type planFlags struct {
	node                nodeFlags
	add, remove, weight []string
	json                bool
}

func planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [DB...]",
		Short: "Show which node holds how much, and what a change of the nodes would move",
		Long: `Show how the assignment divides the partitions of the served versions among the
nodes of a cluster, and what would move if nodes were added, removed or had other
weights. Nothing is changed. With DB, only these databases are shown.

A node is named by its shard id; nodes with the same one hold the same. AT LEAST is
the size by which nodes grow: no assignment with the same sizes moves less. Served
versions move only with heal_after; the next ones are divided among all nodes that
are there. round_robin ignores weights and zones.

` + nodeHelp + `

Exits with 1 if the node is in no cluster, 2 if a shard id or a weight is not valid,
3 if there is no database DB, and 5 if the node does not answer.`,
		Example: `  sequins plan --server node1:9599
  sequins plan --add 4 --add 5=2@zone-b
  sequins plan --remove 3 --weight 1=2 words`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.node.ask(cmd, args, func(c *client.Node) error { return f.run(cmd, c, args) })
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.add, "add", nil, "add a node: `ID[=WEIGHT][@ZONE]`; again for more")
	flags.StringArrayVar(&f.remove, "remove", nil, "remove the node with the shard `ID`; again for more")
	flags.StringArrayVar(&f.weight, "weight", nil, "give a node another weight: `ID=WEIGHT`; again for more")
	flags.BoolVar(&f.json, "json", false, "print the plan as JSON")
	f.node.register(cmd)
	return cmd
}

func (f *planFlags) run(cmd *cobra.Command, c *client.Node, dbs []string) error {
	st, err := c.Status(cmd.Context())
	if err == nil {
		err = chooseDBs(&st, c.URL(), dbs)
	}
	if err != nil {
		return err
	}
	before := st.Shards()
	switch {
	case st.Assignment == "" && len(before) > 0:
		return fmt.Errorf("%s has not joined its cluster yet, and knows only itself: ask another node, or when ZooKeeper is back", c.URL())
	case len(before) == 0:
		return fmt.Errorf("%s is in no cluster of nodes that hold partitions: ask a node with [sharding] enabled", c.URL())
	}
	after, err := f.change(before)
	if err != nil {
		return usageError(err)
	}
	p := newPlan(&st, before, after)
	if f.json {
		return printJSON(cmd.OutOrStdout(), p)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), p.text(c.URL()))
	return err
}

// change returns the members, by shard id, after the changes that the flags ask for.
func (f *planFlags) change(members map[string]shard.Member) (map[string]shard.Member, error) {
	all := maps.Clone(members)
	for _, id := range f.remove {
		if err := isMember(all, id); err != nil {
			return nil, fmt.Errorf("--remove %s: %w", id, err)
		}
		delete(all, id)
	}
	for _, text := range f.weight {
		id, weight, err := parseShare(text, 0)
		if err = cmp.Or(err, isMember(all, id)); err != nil {
			return nil, fmt.Errorf("--weight %s: %w", text, err)
		}
		all[id] = shard.Member{ShardID: id, Weight: weight, Zone: all[id].Zone}
	}
	for _, text := range f.add {
		share, zone, _ := strings.Cut(text, "@")
		id, weight, err := parseShare(share, 1)
		if _, found := all[id]; err == nil && found {
			err = errors.New("a node has this shard id, and another one would hold the same: --weight gives it another weight")
		}
		if err != nil {
			return nil, fmt.Errorf("--add %s: %w", text, err)
		}
		all[id] = shard.Member{ShardID: id, Weight: weight, Zone: zone}
	}
	if len(all) == 0 {
		return nil, errors.New("no node would be left that holds partitions: remove fewer, or add one")
	}
	return all, nil
}

// isMember returns an error if no member has the shard id; it lists the shard ids of the members.
func isMember(members map[string]shard.Member, id string) error {
	if _, found := members[id]; found {
		return nil
	}
	known := slices.Sorted(maps.Keys(members))
	return fmt.Errorf("no node has this shard id; there are %s%s", human.Some(known), nearest.DidYouMean(nearest.Of(id, known)))
}

// parseShare parses ID=WEIGHT, or ID for the default weight unless that is 0. The limits of a weight are those of the configuration.
func parseShare(text string, weight float64) (id string, _ float64, err error) {
	id = text
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		id = text[:i]
		weight, err = strconv.ParseFloat(text[i+1:], 64)
	}
	switch {
	case id == "":
		return "", 0, errors.New("a shard id is needed")
	case err != nil || !(weight >= 0.01 && weight <= 1000):
		return "", 0, errors.New("a weight is a number from 0.01 to 1000")
	}
	return id, weight, nil
}

// plan is the result of sequins plan as JSON.
type plan struct {
	Assignment shard.Assignment `json:"assignment"`
	Databases  []dbPlan         `json:"databases"`
	Total      amounts          `json:"total"`
	Shards     []*shardPlan     `json:"shards"`
	Hints      []string         `json:"hints,omitempty"` // problems of the cluster, and hints on the databases after the change

	byID map[string]*shardPlan
}

// dbPlan is how the served version of a database is divided.
type dbPlan struct {
	Database    string `json:"database"`
	Version     string `json:"version,omitempty"` // "" if the node serves none
	Replication int    `json:"replication"`
	amounts
}

// amounts are those of one database, or of all.
type amounts struct {
	Partitions int   `json:"partitions"`
	Bytes      int64 `json:"bytes"` // of one replica of each partition
	Moved      int   `json:"moved"` // blocks that a shard holds only after the change
	MovedBytes int64 `json:"moved_bytes"`
	LeastBytes int64 `json:"least_bytes"` // by which the shards grow that have more after the change
}

func (a *amounts) add(b amounts) {
	*a = amounts{a.Partitions + b.Partitions, a.Bytes + b.Bytes, a.Moved + b.Moved, a.MovedBytes + b.MovedBytes, a.LeastBytes + b.LeastBytes}
}

// shardPlan is what each node with a shard id holds.
type shardPlan struct {
	ShardID string   `json:"shard_id"`
	Nodes   []string `json:"nodes,omitempty"` // addresses; none of a node that is added
	Zone    string   `json:"zone,omitempty"`
	Weight  float64  `json:"weight"` // 0 of a node that is removed
	Share   float64  `json:"share"`  // of all weights, from 0 to 1
	Before  held     `json:"before"`
	After   held     `json:"after"`
	BytesIn int64    `json:"bytes_in"`
}

type held struct {
	Partitions int   `json:"partitions"`
	Bytes      int64 `json:"bytes"`
}

func (h *held) add(bytes int64) { h.Partitions, h.Bytes = h.Partitions+1, h.Bytes+bytes }

// maxReplication is more than the replication of any cluster.
const maxReplication = 16

// newPlan returns how the served versions of a status are divided among members before and after a change.
func newPlan(st *status.Status, before, after map[string]shard.Member) *plan {
	p := &plan{Assignment: st.Assignment, Databases: []dbPlan{}, Hints: st.Problems, byID: make(map[string]*shardPlan)}
	all, weights := maps.Clone(before), 0.0
	maps.Copy(all, after)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		s := &shardPlan{ShardID: id, Zone: all[id].Zone, Weight: after[id].Weight, Share: after[id].Weight}
		if p.Assignment == shard.RoundRobin {
			s.Share = math.Ceil(min(s.Weight, 1)) // they are all alike, but those that are removed
		}
		weights += s.Share
		p.byID[id], p.Shards = s, append(p.Shards, s)
	}
	for _, n := range st.Members() {
		if s := p.byID[n.ShardID]; s != nil && n.Weight > 0 {
			s.Nodes = append(s.Nodes, n.Addr)
		}
	}
	for _, s := range p.Shards {
		s.Share /= weights
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		version := st.DBs[name].Current(st.Node)
		v := st.DBs[name].Versions[version]
		d, sizes := dbPlan{Database: name, Version: version, Replication: min(v.TargetReplication, maxReplication)}, v.Sizes()
		was := shard.Assign(p.Assignment, slices.Collect(maps.Values(before)), len(sizes), d.Replication, name)
		will := shard.Assign(p.Assignment, slices.Collect(maps.Values(after)), len(sizes), d.Replication, name)
		p.compare(&d, sizes, was, will)
		p.Databases = append(p.Databases, d)
		p.Total.add(d.amounts)
		p.Hints = append(p.Hints, v.Hints(name, len(after))...)
	}
	return p
}

// compare adds what the shards hold of a database, whose partitions have sizes, by two assignments.
func (p *plan) compare(d *dbPlan, sizes []int64, was, will [][]string) {
	unknown, growth := 0, make(map[string]int64)
	for i, size := range sizes {
		if size == 0 {
			unknown++
		}
		for _, id := range was[i] {
			p.byID[id].Before.add(size)
			growth[id] -= size
		}
		for _, id := range will[i] {
			p.byID[id].After.add(size)
			growth[id] += size
			if !slices.Contains(was[i], id) {
				p.byID[id].BytesIn += size
				d.add(amounts{Moved: 1, MovedBytes: size})
			}
		}
		d.add(amounts{Partitions: 1, Bytes: size})
	}
	for _, bytes := range growth {
		d.LeastBytes += max(0, bytes)
	}
	if unknown > 0 {
		p.Hints = append(p.Hints, fmt.Sprintf("The size of %s of %s is unknown and counts as 0: no node that answers holds them.", human.Plural(unknown, "partition"), d.Database))
	}
}

// text returns the plan for people. Data from the network is escaped.
func (p *plan) text(url string) string {
	head := term.Clean(url+", assignment "+string(p.Assignment)) + "\n"
	for _, hint := range p.Hints {
		head += term.Clean(hint) + "\n"
	}
	dbs := term.NewTable("DATABASE", "VERSION", "REPLICATION", "PARTITIONS", "SIZE", "MOVES", "SIZE MOVED", "AT LEAST")
	row := func(name, version, replication string, a amounts) {
		dbs.Row(name, version, replication, number(int64(a.Partitions)), size(a.Bytes), number(int64(a.Moved)), size(a.MovedBytes), size(a.LeastBytes))
	}
	for _, d := range p.Databases {
		row(term.Clean(d.Database), dashIf(d.Version == "", term.Clean(d.Version)), number(int64(d.Replication)), d.amounts)
	}
	row("all", "", "", p.Total)
	nodes := term.NewTable("SHARD", "NODE", "ZONE", "WEIGHT", "SHARE", "PARTITIONS", "SIZE", "SIZE IN")
	for _, s := range p.Shards {
		nodes.Row(term.Clean(s.ShardID), dashIf(len(s.Nodes) == 0, term.Clean(human.Some(s.Nodes))), dashIf(s.Zone == "", term.Clean(s.Zone)),
			dashIf(s.Weight == 0, fmt.Sprint(s.Weight)), dashIf(s.Weight == 0, fmt.Sprintf("%.1f%%", 100*s.Share)),
			transition(number(int64(s.Before.Partitions)), number(int64(s.After.Partitions))), transition(size(s.Before.Bytes), size(s.After.Bytes)), size(s.BytesIn))
	}
	return head + dbs.String() + "\n" + nodes.String()
}

// transition returns what is before and after, or one of them if they are the same.
func transition(before, after string) string {
	if before == after {
		return before
	}
	return before + " → " + after
}
