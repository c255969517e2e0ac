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
// Other fields are ignored. Without data or plan, the znode is one of an older
// release or of the original sequins, and counts for every plan.
type partitionData struct {
	// Plan is the plan by which the replica was loaded: see
	// blocks.Manifest.PlanHash.
	Plan string `json:"plan,omitempty"`
}

// maxPartitionData bounds the size of the data of a partition's znode, in bytes.
const maxPartitionData = 4 << 10

// encode returns the data as JSON; nil if it is empty.
func (d partitionData) encode() []byte {
	if d == (partitionData{}) {
		return nil
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // cannot fail: a struct of strings
	}
	return data
}

// planParser parses the data of znodes. It caches the last result, since most
// znodes of a version have the same data.
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
		return "", fmt.Errorf("%d bytes of data, more than the limit of %d", len(data), maxPartitionData)
	}
	var d partitionData
	if err := json.Unmarshal(data, &d); err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	p.last, p.plan = string(data), d.Plan
	return d.Plan, nil
}

// samePlan reports whether two plans are equal or one is unknown.
func samePlan(a, b string) bool { return a == "" || b == "" || a == b }

// SetPlan implements version.Cluster.
func (c *Cluster) SetPlan(db, version, plan string, held []bool) {
	f := c.follow(key{db, version})
	f.updating.Lock()
	other := f.plan != plan
	if other {
		f.plan = plan
		c.updateView(f, new(view)) // the vanished ones may have had another plan
	}
	f.updating.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	if other {
		c.unpublish(f)
		f.data = partitionData{Plan: plan}.encode()
		f.division, f.sufficed, f.stable, f.lackingSince = nil, false, false, time.Time{}
	}
	if f.division == nil || len(f.division.owners) != len(held) {
		f.division = c.divide(f, c.members.Load(), len(held), c.holders(f, held))
	}
	c.assess(f, f.view.Load())
	if other {
		c.changed()
	}
}

// assess records that all partitions have enough replicas for a switch. That is
// never reset. c.mu is held.
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
