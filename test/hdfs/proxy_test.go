//go:build integration

package hdfs

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"sequins/test/expect"
)

// proxies puts a toxiproxy in front of every address that is dialled through it.
type proxies struct {
	t      *testing.T
	server *toxiproxy.ApiServer

	dialled atomic.Int64 // connections

	mu      sync.Mutex
	proxies map[string]*toxiproxy.Proxy
	toxics  map[string][]string // of each address, or "" for all: JSON, as toxiproxy's API takes it
}

func newProxies(t *testing.T) *proxies {
	p := &proxies{t: t, proxies: map[string]*toxiproxy.Proxy{}, toxics: map[string][]string{}}
	p.server = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	t.Cleanup(func() {
		for _, proxy := range p.proxies {
			proxy.Stop()
		}
	})
	return p
}

// Dial is for hdfs.Options.
func (p *proxies) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	proxy, err := p.to(address)
	if err != nil {
		return nil, err
	}
	p.dialled.Add(1)
	var d net.Dialer
	return d.DialContext(ctx, network, proxy.Listen)
}

func (p *proxies) to(address string) (*toxiproxy.Proxy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if proxy := p.proxies[address]; proxy != nil {
		return proxy, nil
	}
	proxy := toxiproxy.NewProxy(p.server, address, "127.0.0.1:0", address)
	if err := proxy.Start(); err != nil {
		return nil, err
	}
	p.proxies[address] = proxy
	return proxy, p.poison(address, proxy, append(p.toxics[""], p.toxics[address]...))
}

func (p *proxies) poison(address string, proxy *toxiproxy.Proxy, toxics []string) error {
	for _, toxic := range toxics {
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return fmt.Errorf("%s: %s: %w", address, toxic, err)
		}
	}
	return nil
}

// add adds a toxic to what lies before one address, or "" for all of them: those there are, and those that come.
func (p *proxies) add(address, toxic string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toxics[address] = append(p.toxics[address], toxic)
	for a, proxy := range p.proxies {
		if address == a || address == "" {
			expect.NoError(p.t, p.poison(a, proxy, []string{toxic}))
		}
	}
}

// heal takes all toxics away.
func (p *proxies) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.toxics)
	for _, proxy := range p.proxies {
		proxy.Toxics.ResetToxics(context.Background())
	}
}

// addresses are those that were dialled.
func (p *proxies) addresses() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.proxies {
		all = append(all, a)
	}
	return all
}

// stop makes an address refuse connections, and closes those there are.
func (p *proxies) stop(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxies[address].Stop()
}
