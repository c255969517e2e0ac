package version

import (
	"cmp"
	"slices"

	"sequins/internal/content"
)

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

// kept returns the former versions that stay on the disk and open: the newest Keep-1 that are complete or were active,
// and that are neither held nor excluded, one of a name; none when the disk is full. A version that is not the pinned one stays, too: the pin may be taken back.
func (d *decision) kept() []content.Input {
	var kept []content.Input
	names, before := []string{d.Current.Name}, d.Before()
	for i := len(d.Entries) - 1; i >= 0 && len(kept) < d.Keep-1 && !d.isCrowded(); i-- {
		v := &d.Entries[i]
		former := v.Former || v.Complete && v.Name < max(d.Current.Name, before.Name)
		if !former || v.Verdict == Held || v.Coverage == Absent || v.Removal != Staying || v.Input == d.Current || v.Input == before ||
			slices.Contains(d.Pin.Exclude, v.Name) || slices.Contains(names, v.Name) {
			continue
		}
		kept, names = append(kept, v.Input), append(names, v.Name)
	}
	return kept
}

// mayReturn reports whether v is a kept version that is at least as whole as what is served, or was before a restart, which the pin does not
// allow. It does not wait for more replicas: nodes may be down, and each of them that is up has kept its part.
func (d *decision) mayReturn(v *Entry) bool {
	served := cmp.Or(d.Current.Name, d.Before().Name)
	return served != "" && !d.Pin.Allows(served) && v.Complete && v.Coverage >= Whole && v.Verdict == Passed && d.isKept(v)
}

// isKept reports whether v is kept, and the source does not list its version with another input that may be served.
func (d *decision) isKept(v *Entry) bool {
	other := func(in content.Input) bool {
		e, _ := d.Entry(in)
		return in.Name == v.Name && in != v.Input && !e.Failure.Waits && e.Verdict != Held
	}
	return slices.Contains(d.kept(), v.Input) && !slices.ContainsFunc(d.Listed, other)
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
