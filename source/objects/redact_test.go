package objects_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"testing"

	"sequins/source/objects"
)

// Errors keep what they are and lose what is secret in URLs.
func TestRedact(t *testing.T) {
	_, parse := url.Parse("https://a.blob.core.windows.net/c?sv=1&sig=hunter2%2f" + "\n") //nolint:staticcheck // it is invalid
	_, user := url.Parse("http://u:hunter2@h:1x/")                                        //nolint:staticcheck // it is invalid
	for want, err := range map[string]error{
		`parse "https://a.blob.core.windows.net/c": net/url: invalid control character in URL`: parse,
		`Get "http://h/p": context canceled`:                                                   &url.Error{Op: "Get", URL: "http://h/p?token=hunter2 hunter2\"hunter2", Err: context.Canceled},
		`at http://***@h/p: no`:                                                                errors.New("at http://u:hunter2@h/p?hunter2: no"),
		`Get "http://h/p": read tcp 10.0.0.2:443: EOF`:                                         &url.Error{Op: "Get", URL: "http://h/p", Err: &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 4711}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 443}, Err: io.EOF}},
		`(https://h/#x https://h/)`:                                                            nil,
		`x *** *** y`:                                                                          errors.New("x k:hunter2 k:hunter2 y"),
		`file a?b: file does not exist`:                                                        fmt.Errorf("file a?b: %w", fs.ErrNotExist),
		`from abfss://c@a.dfs.core.windows.net/p?x: bad`:                                       errors.New("from abfss://c@a.dfs.core.windows.net/p?x: bad"),
		`parse "http://***@h:1x/": invalid port ":1x" after host`:                              user,
	} {
		got := objects.Redact(err, "", "k:hunter2")
		switch {
		case err == nil && got != nil || err != nil && (got == nil || got.Error() != want):
			t.Errorf("got  %v\nwant %s", got, want)
		case err != nil && errors.Is(err, context.Canceled) != errors.Is(got, context.Canceled) || errors.Is(err, fs.ErrNotExist) != errors.Is(got, fs.ErrNotExist):
			t.Errorf("%v is another error than %v", got, err)
		}
		if said := fmt.Sprintf("%+v", got); strings.Contains(said, "hunter2") {
			t.Error(said)
		}
	}
}
