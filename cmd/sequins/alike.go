package main

import (
	"sync/atomic"

	"sequins/config"
	"sequins/observe/status"
)

// alike are the settings of this node that others compare with theirs. They change at a reload.
type alike struct{ of atomic.Pointer[config.Config] }

// set replaces the configuration.
func (a *alike) set(c config.Config) { a.of.Store(&c) }

// settings returns the settings. Tokens are compared by a part of the hash of their file.
func (a *alike) settings(tokens *tokenFile) status.Settings {
	all := status.Settings(a.of.Load().Alike())
	if tokens != nil {
		all["auth.tokens_file"] = tokens.tokens.Fingerprint()
	}
	return all
}
