package version

import "sequins/internal/content"

// Postponed says whether a load that was ordered waits for a time at which it may begin. Nothing is lost if
// it is cancelled for a newer version meanwhile.
type Postponed struct {
	Input     content.Input
	Postponed bool
}

func (Postponed) event() {}

func (m *machine) notePostponed(e Postponed) {
	if v := m.entry(e.Input); v != nil && v.Work == Loading {
		v.Postponed = e.Postponed
	}
}

// Urgent reports whether a load of a version must not be postponed: nothing is served, or nothing that the pin allows, or
// the version itself is or was served and lacks partitions, or people have pinned or approved it.
func (s State) Urgent(in content.Input) bool {
	return s.Floor() == content.Input{} || in == s.Current || in == s.Served || in == s.Taken || s.Pin.Excuses(in.Name)
}

// Removable returns the inputs other than in that are being removed, or are when the disk is full.
func (s State) Removable(in content.Input) (all []content.Input) {
	for _, v := range s.Entries {
		kept := v.Former || v.Name < s.Current.Name
		if v.Input != in && v.Input != s.Current && v.Input != s.Served && (v.Exit != Staying || kept) {
			all = append(all, v.Input)
		}
	}
	return all
}
