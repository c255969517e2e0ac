package loadproc

import (
	"errors"
	"fmt"
	"syscall"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/load"
	"sequins/store"
)

// Room is what the node knows of the disk space for a load.
type Room struct {
	// Want are the partitions that this node has to hold, and Held reports for each partition whether it does.
	Want []int
	Held []bool
	// Blocks is the size of the blocks of the version that is served, and Source that of the part of its files that
	// they were made from, in bytes; 0 if nothing is served.
	Blocks, Source int64
	// Removable are the versions of the database that are kept only as long as there is room, and Freed is how many bytes are freed when
	// they are removed.
	Removable []content.Input
	Freed     int64
	// Least is how many bytes a partition needs at least, as earlier attempts have shown; 0 if that is not known.
	Least float64
}

// Missing returns how many partitions are to be loaded.
func (r Room) Missing() (n int) {
	for _, p := range r.Want {
		if p >= len(r.Held) || !r.Held[p] {
			n++
		}
	}
	return n
}

// maxGrowth bounds how many bytes of blocks a byte of the files is estimated to take: a version that is served may be an exception, such as one of
// placeholders, which the files compress better than blocks.
const maxGrowth = 4

// demand is what a load needs on the disk, in bytes, by an estimate.
type demand struct{ blocks, runs float64 }

// demand estimates what a load by the plan m needs, if it may use memory bytes for sorting: for blocks its share of the files of the
// source, times what the blocks of the version that is served take per byte of their files; and for files that are not
// aligned, which are sorted, its share of the files again if it is larger than the memory. It is at least r.Least for each partition.
func (r Room) demand(m store.Manifest, memory int64) demand {
	share := float64(m.SourceOf(r.Missing()))
	d := demand{blocks: share}
	if r.Blocks > 0 && r.Source > 0 {
		d.blocks *= min(maxGrowth, float64(r.Blocks)/float64(r.Source))
	}
	if !m.Aligned && share > float64(memory) {
		d.runs = share
	}
	d.blocks += max(0, r.Least*float64(r.Missing())-d.left(load.Snapshot{}))
	return d
}

// left returns what is still to be written, after progress n.
func (d demand) left(n load.Snapshot) float64 {
	read := fraction(n.BytesDone, n.Bytes)
	if d.runs == 0 {
		return d.blocks * (1 - read)
	}
	return d.runs*(1-read) + d.blocks*(1-fraction(n.PartitionsDone, n.Partitions))
}

// fraction returns done/all, from 0 to 1.
func fraction(done, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, max(0, float64(done)/float64(all)))
}

// A RoomError says that the disk has too little room for a load, which has not begun or has been ended. It wraps ENOSPC.
type RoomError struct {
	Needs   int64 // bytes, by an estimate
	Written int64 // bytes that the load has written, and that are removed; 0: it has not begun
	Free    int64 // bytes on the disk
	Claimed int64 // of these, bytes that running loads will need
	Reserve int64 // and bytes that stay free
	Freed   int64 // see Room
}

func (e *RoomError) Error() string {
	what := "the load has not begun: it"
	if e.Written > 0 {
		what = fmt.Sprintf("the load has been ended after it had written %s, which are removed: another attempt", human.Size(e.Written))
	}
	return fmt.Sprintf("%s needs about %s of the disk, and %s are free, of which %s are for loads that run and %s for load.min_free_disk; %s can be freed: %v",
		what, human.Size(e.Needs), human.Size(e.Free+e.Written), human.Size(e.Claimed), human.Size(max(0, e.Reserve)), human.Size(e.Freed), syscall.ENOSPC)
}

// left returns how many bytes are free for the load; less than 0 if others need more than there are.
func (e *RoomError) left() int64 { return e.Free + e.Written - e.Claimed - max(0, e.Reserve) }

// Unwrap returns ENOSPC.
func (e *RoomError) Unwrap() error { return syscall.ENOSPC }

// FreeingHelps reports whether a load failed because the disk is full, and may succeed when versions are removed that are kept
// only as long as there is room.
func FreeingHelps(err error) bool {
	if room, ok := errors.AsType[*RoomError](err); ok {
		return room.Needs <= room.left()+room.Freed
	}
	return load.Outcome(err) == load.DiskFull
}

// SetReserve sets how many bytes of the disk loads leave free. If it is negative, the disk is not checked.
func (l *Launcher) SetReserve(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserve = bytes
}

// Claim checks, before Load, that the disk has room for a load by the plan m, beside what other running loads will need. Otherwise
// it returns a *RoomError. The claim is for all partitions that are missing, also those that other nodes load.
func (p *Process) Claim(m store.Manifest, room Room) error {
	l := p.launcher
	p.freed = room.Freed
	free, known := l.Free()
	d := room.demand(m, p.memory)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &RoomError{Needs: int64(d.left(load.Snapshot{})), Free: free, Claimed: l.claimed(p), Reserve: l.reserve, Freed: room.Freed}
	if known && l.reserve >= 0 && e.Needs > 0 && e.Needs > e.left() {
		return e
	}
	if l.claims == nil {
		l.claims = make(map[*Process]bool)
	}
	l.claims[p] = true
	p.demand, p.missing, p.left, p.others = d, room.Missing(), d.left(load.Snapshot{}), 0
	return nil
}

// claimed returns how many bytes the running loads other than p will still write. l.mu is held.
func (l *Launcher) claimed(p *Process) int64 {
	var bytes float64
	for other := range l.claims {
		if other != p {
			bytes += max(other.left, float64(other.allowed.Load())) + other.others
		}
	}
	return int64(bytes)
}

// leaveToOthers divides the claim: the process loads own of the missing partitions, and other nodes load the others.
func (p *Process) leaveToOthers(own int) {
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	p.own = min(1, float64(own)/float64(max(1, p.missing)))
	p.left, p.others = p.left*p.own, p.demand.blocks*(1-p.own)
}

// Copied takes a partition that was copied from another node off the claim.
func (p *Process) Copied() {
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	p.others = max(0, p.others-p.demand.blocks/float64(max(1, p.missing)))
}

// advance takes what the process has written off the claim.
func (p *Process) advance(n load.Snapshot) {
	p.launcher.mu.Lock()
	defer p.launcher.mu.Unlock()
	p.left = min(p.left, p.demand.left(n)*p.own)
}

// Fits returns a *RoomError if the disk has no room for some more bytes. What running loads have claimed is not counted, because the bytes
// may be a part of it.
func (l *Launcher) Fits(bytes int64) error {
	room, known := l.measure(nil)
	if room.Needs, room.Claimed = bytes, 0; known && room.Reserve >= 0 && bytes > room.left() {
		return &room
	}
	return nil
}
