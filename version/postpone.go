package version

// Postponed says whether a load that was ordered waits for a time at which it may begin. Nothing is lost if
// it is cancelled for a newer version meanwhile.
type Postponed struct {
	Version   string
	Postponed bool
}

func (Postponed) event() {}

func (m *machine) notePostponed(e Postponed) {
	if v := m.entry(e.Version); v != nil && v.Work == Loading {
		v.Postponed = e.Postponed
	}
}

// Urgent reports whether a load of a version must not be postponed: nothing is served, or nothing that the pin allows, or
// the version itself is or was served and lacks partitions, or people have pinned or approved it.
func (s State) Urgent(id string) bool {
	return s.Floor() == "" || id == s.Current || id == s.Served || s.Pin.Excuses(id)
}

// Removable returns the versions other than id that are being removed, or are when the disk is full.
func (s State) Removable(id string) (ids []string) {
	for _, v := range s.Entries {
		kept := v.Former || v.Name < s.Current
		if v.Name != id && v.Name != s.Current && v.Name != s.Served && (v.Exit != Staying || kept) {
			ids = append(ids, v.Name)
		}
	}
	return ids
}
