package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// partitionData is the data of a partition's znode, as JSON:
//
//	{"plan":"0123456789abcdef","also":["fedcba9876543210"]}
//
// Other fields are ignored. Without data or plan, the znode is one of an older
// release or of the original sequins, and counts for every plan.
type partitionData struct {
	// Plan is the plan by which the replica was loaded: see
	// store.Manifest.PlanHash. Of several revisions it is that of the newest. Also
	// has the other names of it, and the plans and names of the other revisions.
	Plan string   `json:"plan,omitempty"`
	Also []string `json:"also,omitempty"`
}

// maxPartitionData bounds the size of the data of a partition's znode, in bytes.
const maxPartitionData = 4 << 10

// encode returns the data as JSON; nil if it is empty.
func (d partitionData) encode() []byte {
	if d.Plan == "" {
		return nil
	}
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // cannot fail: it consists of strings
	}
	return data
}

// planParser parses the data of znodes. It caches the last result, since most
// znodes of a version have the same data.
type planParser struct {
	last   string
	parsed partitionData
}

func (p *planParser) parse(data []byte) (partitionData, error) {
	switch {
	case len(data) == 0:
		return partitionData{}, nil
	case string(data) == p.last:
		return p.parsed, nil
	case len(data) > maxPartitionData:
		return partitionData{}, fmt.Errorf("%d bytes of data, more than the limit of %d", len(data), maxPartitionData)
	}
	var d partitionData
	if err := json.Unmarshal(data, &d); err != nil {
		return partitionData{}, fmt.Errorf("data: %w", err)
	}
	p.last, p.parsed = string(data), d
	return d, nil
}

// holds reports whether d is of a replica by a plan: also if the plan of either is
// unknown.
func (d partitionData) holds(plan string) bool {
	return d.Plan == "" || plan == "" || d.Plan == plan || slices.Contains(d.Also, plan)
}

// add adds a plan.
func (d *partitionData) add(plan string) {
	switch {
	case plan == "" || plan == d.Plan || slices.Contains(d.Also, plan):
	case d.Plan == "":
		d.Plan = plan
	default:
		d.Also = append(d.Also, plan)
	}
}

// SetPlan implements version.Following.
func (f *following) SetPlan(plan string, held []bool) {
	c := f.c
	c.mu.Lock()
	defer c.mu.Unlock()
	other := f.plan != plan
	if other {
		f.updating.Lock()
		f.plan = plan
		f.updateView(new(view)) // the vanished ones may have had another plan
		f.updating.Unlock()
		f.unpublish()
		f.publishReport()
		f.division, f.switched, f.sufficed, f.stable, f.lackingSince = nil, false, false, false, time.Time{}
	}
	for p, here := range held {
		if here {
			f.held[p] = true
		}
	}
	if f.division == nil || len(f.division.owners) != len(held) {
		f.division = f.divide(c.members.Load(), held)
	}
	f.assess(f.view.Load())
	if other {
		c.changed()
	}
}

// Switched implements version.Following.
func (f *following) Switched() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.switched = true
	f.assess(f.view.Load())
}

// assess records that all partitions of a version that this node has switched to
// have enough replicas. That is never reset. c.mu is held.
func (f *following) assess(v *view) {
	if f.division != nil && f.switched && !f.sufficed {
		f.sufficed = !f.short(v)
	}
}

// short reports whether a partition has too few replicas for a switch. c.mu is held.
func (f *following) short(v *view) bool {
	for p := range f.division.owners {
		n := len(at(v.replicas, p))
		if f.advertised[p] {
			n++
		}
		if n < f.c.o.MinReplication {
			return true
		}
	}
	return false
}
