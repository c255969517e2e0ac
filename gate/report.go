package gate

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// State is what a node makes of a version.
type State string

const (
	// Pending: figures are missing, of this node or of others.
	Pending State = "pending"
	// Passed: the version keeps the rules, or somebody has approved it.
	Passed State = "passed"
	// Held: it breaks a rule.
	Held State = "held"
	// Active: the node serves it.
	Active State = "active"
)

// Report is what a node tells the others of a version.
type Report struct {
	// Plan is the plan of its blocks: reports of other plans are of another version.
	Plan  string `json:"plan"`
	State State  `json:"state"`
	// Judge: the node served a version when it judged this one, so that it can compare.
	Judge bool `json:"judge,omitempty"`
	// Rules is Rules.Fingerprint.
	Rules  string `json:"rules,omitempty"`
	Reason string `json:"reason,omitempty"` // of Pending and Held; at most maxReason bytes
	Sample Sample `json:"sample"`
	// Figures are those of the partitions that the node holds, ascending: for each of them three unsigned varints (see
	// encoding/binary): the number of the partition, less that of the one before and 1, its records, and its bytes.
	Figures []byte `json:"figures,omitempty"` // base64 in JSON

	partitions []figures // decoded
}

// figures are those of one partition.
type figures struct {
	partition int
	Totals
}

const (
	// MaxReport limits an encoded report, in bytes: a znode has no more. There is room for at least 4,000 partitions
	// on one node.
	MaxReport = 64 << 10
	// maxReason limits Report.Reason, in bytes.
	maxReason = 1000
	// maxPartitions limits the number of a partition.
	maxPartitions = 1 << 31
	// maxFigure limits each figure, so that sums cannot overflow.
	maxFigure = 1 << 42
)

// errTooLarge is the error for a report that does not fit into a znode.
var errTooLarge = errors.New("this node holds so many partitions that their figures do not fit into one znode; without them, the version cannot pass the gate")

// encode returns the report as JSON.
func (r Report) encode() ([]byte, error) {
	r.Reason = r.Reason[:min(len(r.Reason), maxReason)]
	next := 0
	for _, f := range r.partitions {
		r.Figures = binary.AppendUvarint(r.Figures, uint64(f.partition-next))
		r.Figures = binary.AppendUvarint(r.Figures, uint64(f.Records))
		r.Figures = binary.AppendUvarint(r.Figures, uint64(f.Bytes))
		next = f.partition + 1
	}
	data, err := json.Marshal(r)
	if err == nil && len(data) > MaxReport {
		err = errTooLarge
	}
	return data, err
}

// parseReport parses a report of another node.
func parseReport(data []byte) (Report, error) {
	var r Report
	if len(data) > MaxReport {
		return r, fmt.Errorf("%d bytes, more than the limit of %d", len(data), MaxReport)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	if r.Sample.Keys < 0 || r.Sample.Keys > maxFigure || r.Sample.Missing < 0 || r.Sample.Missing > r.Sample.Keys {
		return r, errors.New("an impossible sample")
	}
	switch r.State {
	case Pending, Passed, Held, Active:
	default:
		return r, fmt.Errorf("unknown state %q", r.State)
	}
	r.Reason = strings.ToValidUTF8(r.Reason[:min(len(r.Reason), maxReason)], "")
	return r, r.decode()
}

// AnyServes reports whether one of the nodes with these reports of a version serves it.
func AnyServes(reports map[string][]byte) bool {
	for _, data := range reports {
		if r, err := parseReport(data); err == nil && r.State == Active {
			return true
		}
	}
	return false
}

// decode decodes Figures.
func (r *Report) decode() error {
	next := uint64(0)
	for rest := r.Figures; len(rest) > 0; {
		var three [3]uint64
		for i := range three {
			n, size := binary.Uvarint(rest)
			if size <= 0 || n > maxFigure {
				return errors.New("figures that cannot be read")
			}
			three[i], rest = n, rest[size:]
		}
		p := next + three[0]
		if p >= maxPartitions {
			return fmt.Errorf("figures of partition %d", p)
		}
		r.partitions = append(r.partitions, figures{int(p), Totals{int64(three[1]), int64(three[2])}})
		next = p + 1
	}
	return nil
}

// report returns the report of a version's figures.
func (m *Measured) report() Report {
	r := Report{Sample: m.Sample}
	for p, f := range m.Figures {
		if f != nil {
			r.partitions = append(r.partitions, figures{p, *f})
		}
	}
	return r
}

// add adds the figures of a report to those that are known.
func (r Report) add(known []*Totals) {
	for i := range r.partitions {
		if f := &r.partitions[i]; f.partition < len(known) && known[f.partition] == nil {
			known[f.partition] = &f.Totals
		}
	}
}

// sum returns the totals, and the partitions whose figures are not known.
func sum(known []*Totals) (t Totals, unknown []int) {
	for p, f := range known {
		if f == nil {
			unknown = append(unknown, p)
			continue
		}
		t.Records += f.Records
		t.Bytes += f.Bytes
	}
	return t, unknown
}
