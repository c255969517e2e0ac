package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sequins/test/contents"
	"sequins/test/versions"
	"sequins/version"
)

// While versions come and go as fast as they can, every request is answered,
// from one version only, and from none that is older than the last.
func TestUpgradesUnderLoad(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("v%03d", i) }
	next := func(i int) *version.Version {
		return versionOf(t, "db", name(i), 1, map[string]string{"small": "small of " + name(i), "large": strings.Repeat(name(i), 20<<10)})
	}
	set := version.NewSet("db")
	versions.Activate(t, set, next(0))
	s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			if err := readVersions(s.addr, []string{"small", "large", "absent"}[i%3], stop); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 40 {
		versions.Activate(t, set, next(i+1))
		closeVersion(t, set.Remove(contents.In(name(i))))
	}
	close(stop)
	clients.Wait()
}

// readVersions asks for a key until it is told to stop.
func readVersions(addr, key string, stop <-chan struct{}) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for last := ""; ; {
		select {
		case <-stop:
			return nil
		default:
		}
		fmt.Fprintf(c, "GET /db/%s HTTP/1.1\r\nHost: x\r\n\r\n", key)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		v := resp.Header.Get("X-Sequins-Version")
		if err := checkVersion(key, v, resp); err != nil {
			return err
		}
		if v < last {
			return fmt.Errorf("version %s after %s", v, last)
		}
		last = v
	}
}

// checkVersion reads a body and wants that of the version in the header.
func checkVersion(key, v string, resp *http.Response) error {
	defer resp.Body.Close()
	want := map[string]string{"small": "small of " + v, "large": strings.Repeat(v, 20<<10), "absent": "no such key\n"}[key]
	var body strings.Builder
	if _, err := bufio.NewReader(resp.Body).WriteTo(&body); err != nil {
		return err
	}
	if body.String() != want {
		return fmt.Errorf("%s of %s: status %d, %d bytes: %.40q", key, v, resp.StatusCode, body.Len(), body.String())
	}
	return nil
}
