package main

import (
	"context"
	"fmt"

	"sequins/config"
	"sequins/node"
	"sequins/tracing"
	"sequins/tracing/otlp"
)

// openTracer has a node send traces, if the configuration says so. What it adds to given has to be closed last:
// what is closed before has spans that end then.
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
