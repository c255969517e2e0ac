package version

// Retry is a refresh for one version: if its load has failed, it is tried
// again. It comes some time after each failure, so that no refresh is needed.
type Retry struct{ Version string }

func (Retry) event() {}

func (m *machine) noteRetry(name string) {
	if v := m.entry(name); v != nil && v.Exit == Staying {
		v.Failed, v.Retried, v.Reloaded = false, false, nil
	}
}
