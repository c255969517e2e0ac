package node

import (
	"errors"
	"time"

	"sequins/blocks"
	"sequins/internal/content"
	"sequins/shard"
	"sequins/store"
	"sequins/version"
	"sequins/version/gate"
	"sequins/version/report"
)

// live is a version in the set and its state in the node.
type live struct {
	v *version.Version
	version.Following
	manifest store.Manifest         // of its content
	open     []bool                 // by partition: its local block is open
	figures  map[int]report.Figures // of the open blocks, by partition
	unopened error                  // why a block that is here and not damaged could not be opened at the last attempt

	// damaged are the partitions whose block is damaged, and read until another one is loaded. One that is withdrawn has the time from which on it is
	// advertised again if no other node holds it; zero: it is advertised.
	damaged map[int]time.Time

	retired time.Time // when it was retired last
	stall   time.Time // when it has waited for other nodes for long; zero: it is not complete here, or does not wait

	judged judged // by the gate

	released map[int]time.Time // surplus partitions and the time of their release, see releaseSurplus
}

// judged is what a judge knows of a version.
type judged struct {
	verdict    gate.Verdict
	measures   *gate.Measures // by the rules; nil until they have been read
	measuring  bool           // they are being read
	waitUntil  time.Time      // until when the verdict waits for what may never come; zero: it does not
	unreported bool           // it was logged that there is none
}

func newLive(db string, m store.Manifest, f version.Following) (*live, error) {
	partitioner, err := shard.ParsePartitioner(m.Partitioner)
	if err != nil {
		return nil, err
	}
	l := &live{
		v: version.New(version.Info{
			DB: db, Content: m.Content(), Partitions: m.Partitions, Partitioner: partitioner,
			LastModified: m.LastModified, Following: f,
		}),
		Following: f,
		manifest:  m,
		open:      make([]bool, m.Partitions),
		figures:   make(map[int]report.Figures),
		damaged:   make(map[int]time.Time),
		released:  make(map[int]time.Time),
	}
	l.v.Withhold(true) // until it is judged
	return l, nil
}

// content returns what the version's blocks are made from, and in its input.
func (l *live) content() content.Content { return l.v.Content }
func (l *live) in() content.Input        { return l.v.Input }

// records returns the records of the open blocks.
func (l *live) records() (n int64) {
	for _, f := range l.figures {
		n += f.Records
	}
	return n
}

// Advertise advertises a partition if the gate lets the version pass.
func (l *live) Advertise(partition int) {
	if l.judged.verdict.MayServe() {
		l.Following.Advertise(partition)
	}
}

// advertiseOpen advertises the open partitions of a version that are not given up.
func (l *live) advertiseOpen() {
	for p, open := range l.open {
		if open && l.released[p].IsZero() {
			l.Advertise(p)
		}
	}
}

// put makes a partition readable.
func (l *live) put(p int, r *blocks.Reader) error {
	if err := l.v.Put(p, r); err != nil {
		return errors.Join(err, r.Close())
	}
	props := r.Properties()
	l.open[p] = true
	l.figures[p] = report.Figures{Records: props.Records, Bytes: props.RawBytes, Largest: props.MaxValue}
	delete(l.damaged, p)
	return nil
}
