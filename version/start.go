package version

import (
	"slices"
	"strings"

	"sequins/internal/content"
)

// Start adds the inputs that are on the disk when the node starts. They are opened whatever the source has: a cluster that
// restarts together then serves what its nodes have. So is what was served, and what other nodes serve.
func (f *Facts) Start(local, former []content.Input) {
	for _, in := range local {
		v := f.Add(in)
		v.Local, v.Work, v.Former = true, Unopened, in != f.Served && slices.Contains(former, in)
	}
	for _, in := range []content.Input{f.Served, f.Taken} {
		if in.Name != "" {
			f.Add(in).Work = Unopened
		}
	}
}

// newestOpened is how many of the newest versions of the source are opened at the
// start although nothing of them is on the disk: other nodes may have them.
const newestOpened = 10

// List records the inputs in the source, and the versions that could not be inspected. Failed versions wait for Retry.
func (f *Facts) List(inputs []content.Input, unknown []string) {
	if f.Source == Gone {
		return
	}
	f.Listed, f.Unknown = ascending(inputs), slices.Clone(unknown)
	if f.Source == Unasked {
		for _, in := range f.Listed[max(0, len(f.Listed)-newestOpened):] {
			if !f.isBehind(in) && in != f.Served {
				f.OpenAgain(in)
			}
		}
	}
	f.Source = Known
}

// OpenAgain has an input opened of which nothing is open and about which nothing is being done: other nodes may have come with it.
func (f *Facts) OpenAgain(in content.Input) {
	if in.Name == "" {
		return
	}
	if v := f.Add(in); v.Removal == Staying && v.Work == Resting && v.Coverage == Absent {
		v.Work = Unopened
	}
}

// DeleteAgain has the files deleted that could not be.
func (f *Facts) DeleteAgain() {
	for i := range f.Entries {
		if v := &f.Entries[i]; v.Removal == Undeleted {
			v.Removal = Closed
		}
	}
}

// ascending returns inputs in the order of their names, one of each.
func ascending(inputs []content.Input) []content.Input {
	sorted := slices.SortedStableFunc(slices.Values(inputs), func(a, b content.Input) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(sorted, func(a, b content.Input) bool { return a.Name == b.Name })
}
