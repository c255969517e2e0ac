package local

import (
	"context"

	"sequins/source"
)

// Identity implements source.Identified.
func (s *Source) Identity(context.Context) (string, error) { return source.ProcessUser(), nil }
