package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"sequins/source/objects"
)

// Schemes are the schemes of URLs: those of Hadoop's file systems for Azure. All of them use TLS.
var Schemes = []string{"abfss", "abfs", "wasbs", "wasb"}

// defaultSuffix is the domain of accounts in the public cloud.
const defaultSuffix = "blob.core.windows.net"

// Options configures a Source.
type Options struct {
	// URL is abfss://container@account.dfs.core.windows.net/path, or abfss://container/path if Account or AZURE_STORAGE_ACCOUNT
	// names the account. The path may be empty.
	URL string

	// Account is the storage account of a URL that does not name it.
	Account string

	// ConnectionString, AccountKey and SASToken are credentials; at most one is set. If none is, those of the environment are
	// used.
	ConnectionString, AccountKey, SASToken string

	// Endpoint is the http:// or https:// URL of another server, with the path before the container.
	Endpoint string

	// MaxRetries is the number of consecutive retries of a request. Negative means 0.
	MaxRetries int

	// Timeout bounds the wait for a silent server. 0 means objects.DefaultTimeout.
	Timeout time.Duration

	// Memory bounds the read-ahead of all readers, see objects.Options.
	Memory int64

	// Dial connects to servers. nil means a net.Dialer with Timeout.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Source is a path in a container.
type Source struct {
	*objects.Source
	store *store
}

// Identity implements source.Identified. Whether the server accepts the credentials is not known before a request.
func (s *Source) Identity(context.Context) (string, error) {
	return strings.TrimPrefix(s.store.asks, "with "), nil
}

// New returns the source described by o. It does not connect.
func New(o Options) (*Source, error) {
	p, err := parseURL(o)
	if err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	o.MaxRetries = max(0, o.MaxRetries)
	s := &store{place: p, conns: objects.NewConnections(o.Timeout, o.Dial)}
	if err := s.open(&o); err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	return &Source{objects.New(s, objects.Options{Root: p.path, MaxRetries: o.MaxRetries, Memory: o.Memory}), s}, nil
}

// place is what a URL names.
type place struct {
	scheme, container, account string
	host                       string // of the URL, for messages; empty if it names no account
	endpoint                   string // the URL before the container
	path                       string
}

// URL returns the URL of a key, as the configuration has it.
func (p *place) URL(key string) string {
	if p.host == "" {
		return p.scheme + "://" + p.container + "/" + key
	}
	return p.scheme + "://" + p.container + "@" + p.host + "/" + key
}

func parseURL(o Options) (p place, err error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return p, err
	case !slices.Contains(Schemes, u.Scheme) || u.Host == "":
		return p, fmt.Errorf("%q is not of the form abfss://container@account.dfs.core.windows.net/path", o.URL)
	case u.RawQuery != "" || u.Fragment != "":
		return p, errors.New("a source must be of the form abfss://container@account.dfs.core.windows.net/path: set sas_token or account_key for credentials")
	}
	p = place{scheme: u.Scheme, path: u.Path, endpoint: strings.TrimRight(o.Endpoint, "/")}
	if u.User == nil {
		p.container, p.account = u.Host, cmp.Or(o.Account, variable("AZURE_STORAGE_ACCOUNT"))
		if p.account == "" && o.ConnectionString == "" && (o.AccountKey != "" || o.SASToken != "" || variable("AZURE_STORAGE_CONNECTION_STRING") == "") {
			return p, fmt.Errorf("%q does not name the account: write abfss://container@account.dfs.core.windows.net/path, or set AZURE_STORAGE_ACCOUNT", o.URL)
		}
		p.endpoint = cmp.Or(p.endpoint, "https://"+p.account+"."+defaultSuffix)
		return p, p.check()
	}
	if _, password := u.User.Password(); password || u.User.Username() == "" {
		return p, errors.New("a source must be of the form abfss://container@account.dfs.core.windows.net/path")
	}
	p.container, p.host = u.User.Username(), u.Host
	p.account, _, _ = strings.Cut(u.Hostname(), ".")
	p.endpoint = cmp.Or(p.endpoint, "https://"+strings.Replace(u.Host, ".dfs.", ".blob.", 1))
	return p, p.check()
}

// check checks the endpoint.
func (p *place) check() error {
	_, err := objects.ParseEndpoint(p.endpoint)
	return err
}
