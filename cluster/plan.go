package cluster

import (
	"encoding/json"
	"fmt"
	"time"
)

// partitionData is the data of a partition's znode, as JSON:
//
//	{"plan":"0123456789abcdef"}
//
// Other fields are ignored. A znode without data, or without a plan, is one of
// an older release or of the system that sequins replaces, and counts for
// every plan.
type partitionData struct {
	// Plan is what the replica was loaded by: see blocks.Manifest.PlanHash.
	Plan string `json:"plan,omitempty"`
}

// maxPartitionData bounds what is read of the data of a partition's znode, in
// bytes.
const maxPartitionData = 4 << 10

// encode renders the data; nil if there is nothing to be said.
func (d partitionData) encode() []byte {
	if d == (partitionData{}) {
		return nil
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // a struct of strings
	}
	return data
}

// A planParser reads the data of the znodes of a version, most of which are
// alike.
type planParser struct {
	last string
	plan string
}

func (p *planParser) parse(data []byte) (plan string, err error) {
	switch {
	case len(data) == 0:
		return "", nil
	case string(data) == p.last:
		return p.plan, nil
	case len(data) > maxPartitionData:
		return "", fmt.Errorf("its data is %d bytes, and may be %d", len(data), maxPartitionData)
	}
	var d partitionData
	if err := json.Unmarshal(data, &d); err != nil {
		return "", fmt.Errorf("its data: %w", err)
	}
	p.last, p.plan = string(data), d.Plan
	return d.Plan, nil
}

// samePlan reports whether replicas by two plans are the same. A plan that is
// not known is taken for the same.
func samePlan(a, b string) bool { return a == "" || b == "" || a == b }

// SetPlan implements version.Cluster.
func (c *Cluster) SetPlan(db, version, plan string, held []bool) {
	f := c.follow(key{db, version})
	f.updating.Lock()
	other := f.plan != plan
	if other {
		f.plan = plan
		c.look(f, new(view)) // those that have vanished may have been of another plan
	}
	f.updating.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	if other {
		c.unpublish(f)
		f.data = partitionData{Plan: plan}.encode()
		f.division, f.sufficed, f.ripe, f.lackSince = nil, false, false, time.Time{}
	}
	if f.division == nil || len(f.division.owners) != len(held) {
		f.division = c.divide(f, c.members.Load(), len(held), c.holders(f, held))
	}
	c.assess(f, f.view.Load())
	if other {
		c.changed()
	}
}

// assess notes whether all partitions have enough replicas for a switch by a
// view. Once they have had, it stays noted. c.mu is held.
func (c *Cluster) assess(f *following, v *view) {
	if f.division == nil || f.sufficed {
		return
	}
	for p := range f.division.owners {
		n := len(at(v.replicas, p))
		if f.advertised[p] {
			n++
		}
		if n < c.o.MinReplication {
			return
		}
	}
	f.sufficed = true
}
