package version

// Retry lets a failed version be loaded again. The node sends it some time after each
// failure, and when the version's files have changed. Nothing else ends a failure.
type Retry struct{ Version string }

func (Retry) event() {}

func (m *machine) noteRetry(name string) {
	if v := m.entry(name); v != nil && v.Exit == Staying {
		v.Failed, v.Retried, v.Reloaded = false, false, nil
	}
}
