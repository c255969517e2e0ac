package gateway

import (
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"sequins/test/expect"
)

// Proxy is a proxy between a server and its clients that can disturb connections.
type Proxy struct {
	Addr  string // host:port
	proxy *toxiproxy.Proxy
}

// NewProxy runs a proxy to an address until the test ends.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy partly uses the global logger
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &Proxy{proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	expect.NoError(t, p.proxy.Start())
	t.Cleanup(p.proxy.Stop)
	p.Addr = p.proxy.Listen
	return p
}

// Endpoint returns the proxy's URL.
func (p *Proxy) Endpoint() string { return "http://" + p.Addr }

// Treat adds a toxic, in toxiproxy's JSON format, to all existing and future
// connections.
func (p *Proxy) Treat(t testing.TB, toxic string) {
	t.Helper()
	if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Fatal(err)
	}
}

// Heal removes all toxics. Connections held back by one end.
func (p *Proxy) Heal(t testing.TB) {
	t.Helper()
	p.proxy.Toxics.ResetToxics(t.Context())
}

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() { p.proxy.Stop() }

// Mend accepts connections again.
func (p *Proxy) Mend(t testing.TB) {
	t.Helper()
	expect.NoError(t, p.proxy.Start())
}
