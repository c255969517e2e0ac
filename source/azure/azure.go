package azure

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"sequins/source/objects"
)

// Schemes are the schemes of URLs: those of Hadoop's file systems for Azure. All of them use TLS.
var Schemes = []string{"abfss", "abfs", "wasbs", "wasb"}

// Options configures a Source.
type Options struct {
	// URL is abfss://container@account.dfs.core.windows.net/path, or abfss://container/path if AZURE_STORAGE_ACCOUNT names the
	// account. The path may be empty.
	URL string

	// AccountKey and SASToken are credentials; at most one is set. If none is, those of the environment are used.
	AccountKey, SASToken string

	// Endpoint is the http:// or https:// URL of another server, with the path before the container.
	Endpoint string

	objects.Options
}

// New returns the source described by o. It does not connect.
func New(o Options) (*objects.Source, error) {
	p, path, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	s := &store{place: p}
	if err = s.locate(&o); err == nil {
		err = s.open(&o)
	}
	if err != nil {
		return nil, fmt.Errorf("azure: %w", err)
	}
	return objects.New(s, o.Options, path), nil
}

type place struct {
	scheme, container string
	host              string // of the URL, for messages; empty if it names no account
	account           string
	endpoint          string // the URL before the container
}

// URL returns the URL of a key, as the configuration has it.
func (p *place) URL(key string) string {
	if p.host == "" {
		return p.scheme + "://" + p.container + "/" + key
	}
	return p.scheme + "://" + p.container + "@" + p.host + "/" + key
}

func parseURL(raw string) (p place, path string, err error) {
	u, err := url.Parse(raw)
	if err != nil {
		return p, "", err
	}
	_, password := u.User.Password()
	switch {
	case !slices.Contains(Schemes, u.Scheme) || u.Host == "":
		return p, "", fmt.Errorf("%q is not of the form abfss://container@account.dfs.core.windows.net/path", raw)
	case u.RawQuery != "" || u.Fragment != "":
		return p, "", errors.New("a source must be of the form abfss://container@account.dfs.core.windows.net/path: set sas_token or account_key for credentials")
	case u.User == nil:
		return place{scheme: u.Scheme, container: u.Host, account: variable("AZURE_STORAGE_ACCOUNT")}, u.Path, nil
	case password || u.User.Username() == "":
		return p, "", errors.New("a source must be of the form abfss://container@account.dfs.core.windows.net/path")
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return place{scheme: u.Scheme, container: u.User.Username(), host: u.Host, account: account}, u.Path, nil
}

// locate sets the endpoint: that of the options, or of the account.
func (p *place) locate(o *Options) error {
	p.endpoint = strings.TrimRight(o.Endpoint, "/")
	switch {
	case p.account == "":
		return fmt.Errorf("%q does not name the account: write abfss://container@account.dfs.core.windows.net/path, or set AZURE_STORAGE_ACCOUNT", p.URL(""))
	case p.endpoint == "" && p.host != "":
		p.endpoint = "https://" + strings.Replace(p.host, ".dfs.", ".blob.", 1)
	case p.endpoint == "":
		p.endpoint = "https://" + p.account + ".blob.core.windows.net"
	}
	_, err := objects.ParseEndpoint(p.endpoint)
	return err
}
