// Package otlp owns the way of spans to an OpenTelemetry collector: OTLP, over
// HTTP.
//
// A span of package tracing that has ended is put into a queue of a fixed size, or
// dropped if that is full. A goroutine of the SDK sends what is in it, in batches.
// Nobody waits for that but Collector.Close, and that for no longer than
// closeTime.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const (
	// closeTime is what the last spans have to get to the collector.
	closeTime = 3 * time.Second
	// maxText is the longest text of an attribute, in characters.
	maxText = 1 << 10
)

// Options say what is sent, and where.
type Options struct {
	// Endpoint is the URL of the collector: http or https, a host, and what
	// stands before /v1/traces. The rest of what the exporter can be told is in
	// the environment variables OTEL_EXPORTER_OTLP_*; those of the service and
	// the queue, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_BSP_*, are
	// heeded, too.
	Endpoint string
	// Node is what this node is called, Build the version of the program.
	Node, Build string
	// Logger is told once in a while that the collector cannot be reached.
	Logger *slog.Logger
}

// A Collector is where spans go. It is safe for concurrent use.
type Collector struct {
	provider *sdk.TracerProvider
	exporter *otlptrace.Exporter
	log      *slog.Logger
}

// Open returns a Collector that is to be closed. It does not wait for it. An
// error is about the endpoint, or about one of the environment variables.
//
// What goes wrong inside OpenTelemetry is told to one logger in a process: that
// of the last Open.
func Open(ctx context.Context, o Options) (*Collector, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the collector's address: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: o.Logger, endpoint: o.Endpoint})
	otel.SetLogger(logr.FromSlogHandler(o.Logger.Handler()))
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("sequins"), semconv.ServiceVersion(o.Build), semconv.ServiceInstanceID(o.Node)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("what this node tells the collector of itself: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, fmt.Errorf("sending traces to %s: %w", o.Endpoint, err)
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter), sdk.WithRawSpanLimits(limits),
		sdk.WithSampler(sdk.AlwaysSample())) // tracing.Tracer chooses
	return &Collector{provider: provider, exporter: exporter, log: o.Logger}, nil
}

// Provider is what makes spans that go to the collector.
func (c *Collector) Provider() trace.TracerProvider { return c.provider }

// Close sends what has not been sent, for as long as closeTime, and ends what
// runs. Spans that end later are lost.
func (c *Collector) Close() {
	ctx := context.Background()
	cut := time.AfterFunc(closeTime, func() {
		c.exporter.Shutdown(ctx) //nolint:errcheck // it cannot fail
	})
	defer cut.Stop()
	if err := c.provider.Shutdown(ctx); err != nil {
		c.log.Warn("ending the sending of spans", "error", err)
	}
}
