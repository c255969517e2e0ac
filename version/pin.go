package version

import (
	"slices"
)

// Pin is what people have decided about the versions of a database, in the file _PIN of the source (package pin). It
// is the only reason to go back to an older version. The zero Pin allows every version.
type Pin struct {
	Version  string   // the name of the only version that may be served; "" for any
	Excluded []string // names of versions that must not be served
	Approved []string // names of versions that may be served although a gate holds them
}

// Allows reports whether a version, by its id, may be served.
func (p Pin) Allows(id string) bool {
	name := Name(id)
	return (p.Version == "" || p.Version == name) && !slices.Contains(p.Excluded, name)
}

// Excuses reports whether a version, by its id, may be served although a gate holds it.
func (p Pin) Excuses(id string) bool {
	name := Name(id)
	return p.Version == name || slices.Contains(p.Approved, name)
}

// Equal reports whether two pins are the same.
func (p Pin) Equal(other Pin) bool {
	return p.Version == other.Version && slices.Equal(p.Excluded, other.Excluded) && slices.Equal(p.Approved, other.Approved)
}

// Pinned says that the pin is another one than at the last look at the source, because its time is over.
type Pinned struct{ Pin Pin }

func (Pinned) event() {}

func (m *machine) setPin(p Pin) {
	if !m.Pin.Equal(p) {
		m.Pin, m.Rejected = p, nil
	}
}

// Floor returns the version that the node does not go back behind: the active one, or the one that was active before a
// restart. It is "" if there is none, or if the pin does not allow it.
func (s State) Floor() string {
	for _, id := range []string{s.Current, s.Served} {
		if id != "" && s.Pin.Allows(id) {
			return id
		}
	}
	return ""
}

// kept returns the former versions that stay on the disk and open: the newest Keep-1 that are complete or were active,
// that are not excluded, and not stale. A version that is not the pinned one stays, too: the pin may be taken back.
func (m *machine) kept() []string {
	var ids []string
	names := []string{Name(m.Current)}
	for i := len(m.Entries) - 1; i >= 0 && len(ids) < m.Keep-1 && !m.Crowded; i-- {
		v := &m.Entries[i]
		former := v.Former || v.Complete && v.Name < max(m.Current, m.Served)
		if !former || v.Stale || v.Held || !v.Live || v.Exit != Staying || v.Name == m.Current || v.Name == m.Served ||
			slices.Contains(m.Pin.Excluded, Name(v.Name)) || slices.Contains(names, Name(v.Name)) {
			continue
		}
		ids, names = append(ids, v.Name), append(names, Name(v.Name))
	}
	return ids
}

// mayReturn reports whether v is a kept version that is at least as whole as what is served, which the pin does not allow. It
// does not wait for more replicas: nodes may be down, and each of them that is up has kept its part.
func (m *machine) mayReturn(v *Entry) bool {
	return m.Current != "" && !m.Pin.Allows(m.Current) && v.Complete && v.Whole && !v.Unjudged && slices.Contains(m.kept(), v.Name)
}

// replace ends the service of a version that another one has replaced. It is removed unless it is kept.
func (m *machine) replace(v *Entry) {
	v.Former = true
	if slices.Contains(m.kept(), v.Name) {
		v.Status = Prepared
		return
	}
	m.remove(v)
}
