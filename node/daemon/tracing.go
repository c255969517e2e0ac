package daemon

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
	"golang.org/x/time/rate"

	"sequins/node"
	"sequins/observe/tracing"
)

const (
	// collectorPatience limits how long the close of a collector waits for the last spans to be sent.
	collectorPatience = 3 * time.Second
	// collectorErrors is the minimum interval between two warnings about a collector.
	collectorErrors = time.Minute
	// maxAttribute is the maximum length of an attribute's text, in characters.
	maxAttribute = 1 << 10
)

// A collector exports spans to an OpenTelemetry collector: OTLP over HTTP. A finished span is put into a bounded queue, or dropped if that is
// full. A goroutine of the SDK sends the queue in batches. Only Close waits for that.
type collector struct {
	*sdk.TracerProvider
	exporter *otlptrace.Exporter
	log      *slog.Logger
}

// openTracer enables traces, if configured.
func (d *Daemon) openTracer(ctx context.Context, o *node.Options) error {
	endpoint := d.config.Load().Tracing.OTLPEndpoint
	if endpoint == "" {
		return nil
	}
	name, err := advertisedAddress(d.config.Load().Sharding.AdvertisedHostname, o.Listener.Addr())
	if err != nil {
		return err
	}
	to, err := openCollector(ctx, endpoint, name, o.Build, o.Logger)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	d.opened = append(d.opened, to.Close)
	o.Tracer = tracing.New(to, o.Build)
	return nil
}

// openCollector opens the collector at a URL, http or https, a host, and the path before /v1/traces, for the spans of a node. It does not
// connect. Other settings are read from the environment variables OTEL_EXPORTER_OTLP_*; OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and
// OTEL_BSP_* are used, too. An error is about the endpoint or a variable. Errors inside OpenTelemetry go to one logger per process.
func openCollector(ctx context.Context, endpoint, node, build string, log *slog.Logger) (*collector, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("collector address: %w", err)
	}
	limit := &rate.Sometimes{Interval: collectorErrors} // an unreachable collector does not affect the service
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		limit.Do(func() { log.Warn("cannot send spans to the collector", "endpoint", endpoint, "error", err) })
	}))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("sequins"), semconv.ServiceVersion(build), semconv.ServiceInstanceID(node)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry resource: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	if err != nil {
		return nil, fmt.Errorf("sending traces to %s: %w", endpoint, err)
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	return &collector{exporter: exporter, log: log, TracerProvider: sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter),
		sdk.WithRawSpanLimits(limits), sdk.WithSampler(sdk.AlwaysSample()))}, nil // tracing.Tracer does the sampling
}

// Close sends the queued spans for at most collectorPatience, and stops. Spans that end later are lost.
func (c *collector) Close() error {
	ctx := context.Background()
	cut := time.AfterFunc(collectorPatience, func() { _ = c.exporter.Shutdown(ctx) }) // never fails
	defer cut.Stop()
	if err := c.Shutdown(ctx); err != nil {
		c.log.Warn("closing the span exporter", "error", err)
	}
	return nil
}
