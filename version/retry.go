package version

// Retry allows a failed version to be retried. The node sends it some time after
// each failure, independently of refreshes.
type Retry struct{ Version string }

func (Retry) event() {}

func (m *machine) noteRetry(name string) {
	if v := m.entry(name); v != nil && v.Exit == Staying {
		v.Failed, v.Retried, v.Reloaded = false, false, nil
	}
}
