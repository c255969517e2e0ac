package version

// Withhold sets whether clients cannot read v by its name, because a gate holds it or has not judged it yet. It changes
// nothing for a version that is or was current, nor for other nodes.
func (v *Version) Withhold(withheld bool) { v.withheld.Store(withheld) }

// mayBeNamed reports whether clients may read v by its name.
func (v *Version) mayBeNamed() bool { return v.wasCurrent.Load() || !v.withheld.Load() }
