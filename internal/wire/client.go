package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	dialTimeout   = 3 * time.Second
	headerTimeout = 10 * time.Second // from the request to the header of the answer
)

// Client sends the requests of a node to other nodes, but for those of reads (package proxy). It follows no redirects, as the secret is for
// the node that is asked. It is safe for concurrent use.
type Client struct {
	scheme, secret string
	via            *http.Transport
}

// NewClient returns a client that sends the secret of the cluster unless it is "". secure enables TLS.
func NewClient(secure *tls.Config, secret string) *Client {
	c := &Client{scheme: "http", secret: secret, via: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: secure,
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: MaxHeader, DisableCompression: true}}
	if secure != nil {
		c.scheme = "https"
	}
	return c
}

// Get sends a request for a path with a query to the node at addr, about the content with a code unless code is "". The caller closes the body of the answer.
func (c *Client) Get(ctx context.Context, addr, target, code string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.scheme+"://"+addr+target, nil)
	if err != nil {
		return nil, err
	}
	if c.secret != "" {
		req.Header.Set(Secret, c.secret)
	}
	if code != "" {
		req.Header.Set(Content, code)
	}
	return c.via.RoundTrip(req)
}

// Close closes idle connections.
func (c *Client) Close() { c.via.CloseIdleConnections() }
