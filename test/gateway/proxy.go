package gateway

import (
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// A Proxy stands between a server and its clients, and can be told to treat
// badly what it passes on.
type Proxy struct {
	Addr  string // host:port
	proxy *toxiproxy.Proxy
}

// NewProxy runs a proxy to an address until the test ends.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // some of it uses the global logger
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &Proxy{proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.proxy.Stop)
	p.Addr = p.proxy.Listen
	return p
}

// Endpoint is the proxy's URL.
func (p *Proxy) Endpoint() string { return "http://" + p.Addr }

// Treat adds a toxic, given as toxiproxy's JSON, to all connections, those
// that are open and those to come.
func (p *Proxy) Treat(t testing.TB, toxic string) {
	t.Helper()
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Fatal(err)
	}
}

// Heal removes all toxics. Connections that a toxic has held back end then.
func (p *Proxy) Heal(t testing.TB) {
	t.Helper()
	p.proxy.Toxics.ResetToxics(t.Context())
}

// Cut ends all connections and refuses new ones.
func (p *Proxy) Cut() { p.proxy.Stop() }

// Mend lets connections through again.
func (p *Proxy) Mend(t testing.TB) {
	t.Helper()
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
}
