package version

import "sequins/internal/content"

// Retry lets a failed version be loaded again. The node sends it some time after each
// failure, and when the version's files have changed. Nothing else ends a failure.
type Retry struct{ Input content.Input }

func (Retry) event() {}

func (m *machine) noteRetry(in content.Input) {
	if v := m.entry(in); v != nil && v.Exit == Staying {
		v.Failed, v.Retried, v.Reloaded = false, false, nil
	}
}
