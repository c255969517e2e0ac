// Package otlp owns the export of spans to an OpenTelemetry collector: OTLP over
// HTTP.
//
// A finished span of package tracing is put into a bounded queue, or dropped if
// that is full. A goroutine of the SDK sends the queue in batches. Only
// Collector.Close waits for that, for at most closeTime.
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
	"golang.org/x/time/rate"
)

const (
	// closeTime bounds how long Close waits for the last spans to be sent.
	closeTime = 3 * time.Second
	// maxText is the maximum length of an attribute's text, in characters.
	maxText = 1 << 10
)

// Options configures what is sent, and where.
type Options struct {
	// Endpoint is the URL of the collector: http or https, a host, and the path
	// before /v1/traces. Other settings of the exporter are read from the
	// environment variables OTEL_EXPORTER_OTLP_*; OTEL_SERVICE_NAME,
	// OTEL_RESOURCE_ATTRIBUTES and OTEL_BSP_* are used, too.
	Endpoint string
	// Node is the name of this node, Build the version of the program.
	Node, Build string
	// Logger receives a rate-limited warning while the collector is unreachable.
	Logger *slog.Logger
}

// Collector exports spans. It is safe for concurrent use.
type Collector struct {
	provider *sdk.TracerProvider
	exporter *otlptrace.Exporter
	log      *slog.Logger
}

// Open returns a Collector, which must be closed. It does not connect. An error
// is about the endpoint or an environment variable.
//
// Errors inside OpenTelemetry go to one logger per process: that of the last
// Open.
func Open(ctx context.Context, o Options) (*Collector, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("collector address: %w", err)
	}
	otel.SetErrorHandler(errorHandler(o))
	otel.SetLogger(logr.FromSlogHandler(o.Logger.Handler()))
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("sequins"), semconv.ServiceVersion(o.Build), semconv.ServiceInstanceID(o.Node)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry resource: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, fmt.Errorf("sending traces to %s: %w", o.Endpoint, err)
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter), sdk.WithRawSpanLimits(limits),
		sdk.WithSampler(sdk.AlwaysSample())) // tracing.Tracer does the sampling
	return &Collector{provider: provider, exporter: exporter, log: o.Logger}, nil
}

// errorPeriod is the minimum interval between two warnings about the collector.
const errorPeriod = time.Minute

// errorHandler logs errors of the SDK. They are rate-limited warnings, since an unreachable collector does not affect the node's service.
func errorHandler(o Options) otel.ErrorHandlerFunc {
	limit := &rate.Sometimes{Interval: errorPeriod}
	return func(err error) {
		limit.Do(func() { o.Logger.Warn("cannot send spans to the collector", "endpoint", o.Endpoint, "error", err) })
	}
}

// Provider returns a provider whose spans go to the collector.
func (c *Collector) Provider() trace.TracerProvider { return c.provider }

// Close sends the queued spans for at most closeTime, and stops. Spans that end
// later are lost.
func (c *Collector) Close() {
	ctx := context.Background()
	cut := time.AfterFunc(closeTime, func() {
		c.exporter.Shutdown(ctx) //nolint:errcheck // never fails
	})
	defer cut.Stop()
	if err := c.provider.Shutdown(ctx); err != nil {
		c.log.Warn("closing the span exporter", "error", err)
	}
}
