package wire_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"sequins/internal/wire"
	"sequins/test/expect"
)

// TestSilentHandshake: a node that accepts connections and stands still does not keep a copy of a block waiting for ever.
func TestSilentHandshake(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	expect.NoError(t, err)
	defer ln.Close()                                               //nolint:errcheck // it ends with the test
	c := wire.NewClient(&tls.Config{InsecureSkipVerify: true}, "") //nolint:gosec // nothing is sent
	defer c.Close()
	const long = 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	resp, err := c.Get(ctx, ln.Addr().String(), "/", "")
	if err == nil {
		resp.Body.Close() //nolint:errcheck // it was only read
	}
	if err == nil || ctx.Err() != nil {
		t.Errorf("%v after %v", err, long)
	}
}
