package fill

import (
	"context"
	"maps"
	"slices"
	"time"

	"sequins/store"
)

const (
	// maxInputsWait is how long nodes that still load may take until they know what their blocks were made from, and inputsPoll is the
	// interval of questions.
	maxInputsWait = 5 * time.Second
	inputsPoll    = 200 * time.Millisecond
)

// recordInputs records what the copied blocks were made from, as other nodes say, so that the next version can have links to them (package
// unchanged). All nodes are asked, not only those that gave them: these may have copies, too, and not know yet. It is called after the
// load, which records the inputs of its own blocks. What is not known only costs copies.
func (f *filling) recordInputs() {
	staging := f.job.Dir.Staging()
	known := make(map[int]store.Input)
	for _, in := range staging.Inputs() {
		known[in.Partition] = in
	}
	before := len(known)
	unknown := slices.DeleteFunc(slices.Clone(f.copied), func(p int) bool { _, found := known[p]; return found })
	for _, addr := range slices.Sorted(maps.Keys(f.peers)) {
		if len(unknown) == 0 {
			break
		}
		for _, in := range f.inputsOf(addr) {
			if i := slices.Index(unknown, in.Partition); i >= 0 {
				known[in.Partition], unknown = in, slices.Delete(unknown, i, i+1)
			}
		}
	}
	if len(known) == before {
		return
	}
	all := slices.SortedFunc(maps.Values(known), func(a, b store.Input) int { return a.Partition - b.Partition })
	if err := staging.SetInputs(all); err != nil {
		f.o.Logger.Warn("it cannot be recorded what copied blocks were made from; the next version copies them again", "version", f.o.Version, "error", err)
	}
}

// inputsOf asks a node, again while it loads.
func (f *filling) inputsOf(addr string) []store.Input {
	for end := time.Now().Add(maxInputsWait); ; {
		ctx, cancel := context.WithTimeout(f.ctx, askTimeout)
		s, err := f.o.Transfer.Inputs(ctx, addr, f.o.DB, f.o.Version, f.plan)
		cancel()
		if err != nil || s.Plan != f.plan {
			return nil
		}
		if len(s.Loading) == 0 || time.Now().After(end) {
			return s.Inputs
		}
		select {
		case <-time.After(inputsPoll):
		case <-f.ctx.Done():
			return nil
		}
	}
}
