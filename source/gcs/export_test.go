package gcs

import "sequins/source/objects"

// NewAt returns a source on a server, with application default credentials or without.
func NewAt(o Options, server string, credentials bool) (*objects.Source, error) {
	return newSource(o, server, credentials)
}
