package main

import (
	"context"
	"fmt"

	"sequins/config"
	"sequins/node"
	"sequins/observe/tracing"
	"sequins/observe/tracing/otlp"
)

// openTracer enables traces, if configured. The closer that it adds to given must be closed last,
// because closing the others ends spans.
func openTracer(ctx context.Context, c *config.Config, o *node.Options, given *closers) (err error) {
	if c.Tracing.OTLPEndpoint == "" {
		return nil
	}
	name := o.Name
	if name == "" {
		if name, err = advertisedAddress("", o.Listener.Addr()); err != nil {
			return err
		}
	}
	collector, err := otlp.Open(ctx, otlp.Options{Endpoint: c.Tracing.OTLPEndpoint, Node: name, Build: o.Build, Logger: o.Logger})
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	*given = append(*given, closing(collector.Close))
	o.Tracer = tracing.New(collector.Provider(), o.Build)
	return nil
}
