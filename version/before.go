package version

import (
	"slices"

	"sequins/internal/content"
)

// Before returns the version that was active before a restart while that is to be served again: it is kept, and no older version becomes active,
// until a newer version is active or nothing of it can be read and that cannot change. It is lost then if it is not in the source any more, or is
// faulty itself; an error of the source or the disk is no reason. What was only likely served is given up if a gate holds it.
func (f *Facts) Before() content.Input {
	if f.Served.Name == "" || f.Current.Name != "" {
		return content.Input{}
	}
	v, _ := f.Entry(f.Served)
	lost := f.Source == Known && !f.Waiting && (f.isFaulty(f.Served.Name) || f.isGone(f.Served.Name) && f.hasAnother())
	switch {
	case v.Removal != Staying, f.Likely && v.Verdict == Held:
		return content.Input{}
	case v.Work != Resting && v.Failure.Kind != Faulty, v.Coverage >= Partial:
		return f.Served
	case lost, v.Failure.Kind == Faulty:
		return content.Input{}
	}
	return f.Served
}

// Floor returns the input that the node does not go back behind: the active one, or the one that was active before a
// restart. It is zero if there is none, or if the pin does not allow it.
func (f *Facts) Floor() content.Input {
	for _, in := range []content.Input{f.Current, f.Before()} {
		if in.Name != "" && f.Pin.Allows(in.Name) {
			return in
		}
	}
	return content.Input{}
}

// isGone reports whether a version is not in the source any more.
func (f *Facts) isGone(name string) bool {
	return !slices.ContainsFunc(f.Listed, func(in content.Input) bool { return in.Name == name }) && !slices.Contains(f.Unknown, name)
}

// hasAnother reports whether a version other than Served may be served. While there is none, nothing is won by
// giving Served up, and other nodes may come back with it.
func (f *Facts) hasAnother() bool {
	return len(f.Listed) > 0 || slices.ContainsFunc(f.Entries, func(v Entry) bool {
		return v.Input != f.Served && v.Coverage > Absent && v.Removal == Staying
	})
}

// isFaulty reports whether the input that the source lists of a version is faulty itself.
func (f *Facts) isFaulty(name string) bool {
	return slices.ContainsFunc(f.Listed, func(in content.Input) bool {
		v := f.entry(in)
		return in.Name == name && v != nil && v.Failure.Kind == Faulty
	})
}

// Deciding reports whether it is not decided yet whether the version that was active before a restart is served again: it is being opened or loaded,
// it can be read, or other nodes may come with it.
func (f *Facts) Deciding() bool {
	before := f.Before()
	if before.Name == "" {
		return false
	}
	v, _ := f.Entry(before)
	return f.Source == Unasked || f.Waiting || v.Work != Resting || v.Coverage >= Partial
}

// isAhead reports whether what other nodes serve is newer than what this node serves or did, and the pin allows it.
func (f *Facts) isAhead() bool {
	return f.Taken.Name > max(f.Current.Name, f.Before().Name) && f.Pin.Allows(f.Taken.Name)
}

// taken returns what other nodes serve if it is ahead and neither held nor has failed here: otherwise nothing is gained by waiting for it.
func (f *Facts) taken() content.Input {
	if v, _ := f.Entry(f.Taken); f.isAhead() && v.Failure.Reason == "" && v.Verdict != Held {
		return f.Taken
	}
	return content.Input{}
}

// takes reports whether what other nodes serve is loaded before newer versions. Once it is here, it only waits for other
// nodes, which may have gone on, so that newer ones do not wait for it.
func (f *Facts) takes() bool {
	v, _ := f.Entry(f.Taken)
	return f.taken().Name != "" && !v.Complete
}

// isBehind reports whether the node does not switch to an input because of what is served, or was before a restart: it is
// served, or has a lesser name, or is another input of the same name than the source lists.
func (f *Facts) isBehind(in content.Input) bool {
	floor := f.Floor()
	other := in.Name == floor.Name && in != floor && !slices.Contains(f.Listed, in)
	return in == f.Current || in.Name < floor.Name || other && !f.isLikely(in)
}

// isLikely reports whether an input may be what was served before a restart: one of several with the greatest name on the disk, unless the source
// lists another one of them.
func (f *Facts) isLikely(in content.Input) bool {
	another := func(listed content.Input) bool { return listed.Name == in.Name && listed != in }
	v, _ := f.Entry(in)
	return f.Likely && in.Name == f.Before().Name && v.Complete && !slices.ContainsFunc(f.Listed, another)
}

// WasServed reports whether clients are served from an input, or were.
func (f *Facts) WasServed(in content.Input) bool {
	v, _ := f.Entry(in)
	return in == f.Current || in == f.Before() || v.Former
}

// Urgent reports whether a load of a version must not be postponed: nothing is served, or nothing that the pin allows, or
// the version itself is or was served and lacks partitions, or people have pinned or approved it.
func (f *Facts) Urgent(in content.Input) bool {
	return f.Floor() == content.Input{} || in == f.Current || in == f.Before() || in == f.taken() || f.Pin.Excuses(in.Name)
}

// Removable returns the inputs other than in that are being removed, or are when the disk is full.
func (f *Facts) Removable(in content.Input) (all []content.Input) {
	for _, v := range f.Entries {
		kept := v.Former || v.Name < f.Current.Name
		if v.Input != in && v.Input != f.Current && v.Input != f.Before() && (v.Removal != Staying || kept) {
			all = append(all, v.Input)
		}
	}
	return all
}
