package version

import (
	"slices"

	"sequins/internal/content"
)

// Pin is what people have decided about the versions of a database, in the file _PIN of the source (package pin). It
// is the only reason to go back to an older version. The zero Pin allows every version.
type Pin struct {
	Version  string   // the only version that may be served; "" for any
	Excluded []string // versions that must not be served
	Approved []string // versions that may be served although a gate holds them
}

// Allows reports whether a version may be served.
func (p Pin) Allows(name string) bool {
	return (p.Version == "" || p.Version == name) && !slices.Contains(p.Excluded, name)
}

// Excuses reports whether a version may be served although a gate holds it.
func (p Pin) Excuses(name string) bool { return p.Version == name || slices.Contains(p.Approved, name) }

// Equal reports whether two pins are the same.
func (p Pin) Equal(other Pin) bool {
	return p.Version == other.Version && slices.Equal(p.Excluded, other.Excluded) && slices.Equal(p.Approved, other.Approved)
}

// Pinned says that the pin is another one than at the last listing of the source, because its time is over.
type Pinned struct{ Pin Pin }

func (Pinned) event() {}

func (m *machine) setPin(p Pin) {
	if !m.Pin.Equal(p) {
		m.Pin, m.Rejected = p, nil
	}
}

// Floor returns the input that the node does not go back behind: the active one, or the one that was active before a
// restart. It is zero if there is none, or if the pin does not allow it.
func (s State) Floor() content.Input {
	for _, in := range []content.Input{s.Current, s.Served} {
		if in.Name != "" && s.Pin.Allows(in.Name) {
			return in
		}
	}
	return content.Input{}
}

// kept returns the former versions that stay on the disk and open: the newest Keep-1 that are complete or were active,
// and that are not excluded. A version that is not the pinned one stays, too: the pin may be taken back.
func (m *machine) kept() []content.Input {
	var kept []content.Input
	names := []string{m.Current.Name}
	for i := len(m.Entries) - 1; i >= 0 && len(kept) < m.Keep-1 && !m.Crowded; i-- {
		v := &m.Entries[i]
		former := v.Former || v.Complete && v.Name < max(m.Current.Name, m.Served.Name)
		if !former || v.Held || !v.Live || v.Exit != Staying || v.Input == m.Current || v.Input == m.Served ||
			slices.Contains(m.Pin.Excluded, v.Name) || slices.Contains(names, v.Name) {
			continue
		}
		kept, names = append(kept, v.Input), append(names, v.Name)
	}
	return kept
}

// mayReturn reports whether v is a kept version that is at least as whole as what is served, which the pin does not allow. It
// does not wait for more replicas: nodes may be down, and each of them that is up has kept its part.
func (m *machine) mayReturn(v *Entry) bool {
	return m.Current.Name != "" && !m.Pin.Allows(m.Current.Name) && v.Complete && v.Whole && !v.Unjudged && m.isKept(v)
}

// isKept reports whether v is kept, and the source does not list its version with another input that may be served.
func (m *machine) isKept(v *Entry) bool {
	other := func(in content.Input) bool {
		e := m.entry(in)
		return in.Name == v.Name && in != v.Input && (e == nil || !e.Failed && !e.Held)
	}
	return slices.Contains(m.kept(), v.Input) && !slices.ContainsFunc(m.Listed, other)
}

// replace ends the service of a version that another one has replaced. It is removed unless it is kept.
func (m *machine) replace(v *Entry) {
	v.Former = true
	if slices.Contains(m.kept(), v.Input) {
		v.Status = Prepared
		return
	}
	m.remove(v)
}
