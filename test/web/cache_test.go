//go:build integration

package web

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

const nginxConf = `daemon off;
worker_processes 1;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  proxy_cache_path %[1]s/cache keys_zone=values:1m;
  server {
    listen %[2]s;
    location / {
      proxy_pass http://%[3]s;
      proxy_cache values;
      proxy_cache_revalidate on;
      proxy_set_header Accept-Encoding $http_accept_encoding;
      add_header X-Cache $upstream_cache_status always;
    }
  }
}
`

// cache is an nginx that caches the answers of a node as their fields say.
type cache struct{ addr string }

func startCache(t *testing.T, n *process.Node) cache {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatalf("%v: make tools installs it", err)
		}
	}
	dir, c := t.TempDir(), cache{process.FreeAddr(t)}
	conf := filepath.Join(dir, "nginx.conf")
	expect.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, c.addr, n.Addr), 0o644))
	if err := os.Chmod(dir, 0o777); err != nil { // as root, nginx has workers of another user
		t.Fatal(err)
	}
	var log expect.Output
	cmd := exec.Command(nginx, "-c", conf, "-g", "user "+owner()+";")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	expect.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // Wait says how it ended
		cmd.Wait()                          //nolint:errcheck // by the signal
		if t.Failed() {
			t.Log(log.String())
		}
	})
	process.Eventually(t, "nginx answers", func() bool {
		resp, err := http.Get("http://" + c.addr + "/livez")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	return c
}

func owner() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return "nobody" // which nginx ignores
}

// get requests a target with header lines, and returns what the cache did, and the body.
func (c cache) get(t *testing.T, target string, lines ...string) (did, body string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+c.addr+target, nil)
	expect.NoError(t, err)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	expect.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	expect.NoError(t, err)
	return resp.Header.Get("X-Cache"), string(b), resp.Header
}

func (c cache) wants(t *testing.T, did, target string, lines ...string) {
	t.Helper()
	if got, _, h := c.get(t, target, lines...); got != did {
		t.Errorf("%s %q: %s, want %s: %v", target, lines, got, did, h)
	}
}

// A cache keeps values for the configured time and asks again with the ETag, which outlives an upgrade that has left the value
// alone. It keeps neither absent keys nor the answer of another coding or session.
func TestCacheKeepsValues(t *testing.T) {
	t.Parallel()
	n := start(t, compressing+"cache_control = \"max-age=2\"\n[db.other]\ncache_control = \"\"\n")
	c := startCache(t, n)
	c.wants(t, "MISS", "/words/small")
	c.wants(t, "HIT", "/words/small")
	c.wants(t, "MISS", "/words/absent")
	c.wants(t, "MISS", "/words/absent")
	for _, coding := range []string{"gzip", "zstd"} {
		c.wants(t, "MISS", "/words/large", "Accept-Encoding: "+coding)
		if did, body, h := c.get(t, "/words/large", "Accept-Encoding: "+coding); did != "HIT" || len(body) > largeSize/100 || h.Get("Content-Encoding") != coding {
			t.Errorf("%s: %s, %d bytes, %v", coding, did, len(body), h)
		}
	}
	if did, body, _ := c.get(t, "/words/large"); did != "MISS" || len(body) != largeSize {
		t.Errorf("without a coding: %s, %d bytes", did, len(body))
	}
	if did, body, h := c.get(t, "/words/small", "X-Sequins-At-Least: 2"); did != "MISS" || h.Get("Retry-After") == "" {
		t.Errorf("a session that is ahead: %s %q", did, body)
	}

	writeVersion(t, filepath.Join(sourceOf(t, n), "words", "2"), map[string]string{"small": "a small value", "large": strings.Repeat("y", largeSize)})
	n.WaitCurrent(t, "words", "2")
	if did, body := c.whenStale(t, "/words/small"); did != "REVALIDATED" || body != "a small value" {
		t.Errorf("a value that is the same in the next version: %s %q", did, body)
	}
	if did, body := c.whenStale(t, "/words/large", "Accept-Encoding: gzip"); did != "EXPIRED" || len(body) > largeSize/100 {
		t.Errorf("a value that has changed: %s, %d bytes", did, len(body))
	}
}

// whenStale requests a target until the cache does not answer on its own.
func (c cache) whenStale(t *testing.T, target string, lines ...string) (did, body string) {
	t.Helper()
	process.Eventually(t, target+" is stale", func() bool {
		did, body, _ = c.get(t, target, lines...)
		return did != "HIT"
	})
	return did, body
}

// sourceOf returns the source of a node of start.
func sourceOf(t *testing.T, n *process.Node) string {
	t.Helper()
	text, err := os.ReadFile(n.Conf)
	expect.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "source = \"")
	source, _, _ := strings.Cut(after, "\"")
	return source
}

// Nothing is cached by default, and what needs a token is not, whatever is configured.
func TestCacheKeepsNothing(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(tokens, []byte("web the-token-of-the-web *\n"), 0o600))
	for name, sections := range map[string]string{
		"by default":  "",
		"with tokens": fmt.Sprintf("[http]\ncache_control = \"public, max-age=60, s-maxage=60\"\n[auth]\ntokens_file = %q\n", tokens),
	} {
		t.Run(name, func(t *testing.T) {
			c := startCache(t, start(t, sections))
			for range 2 {
				for _, target := range []string{"/words/small", "/words/absent", "/words?key=small", "/words?prefix="} {
					c.wants(t, "MISS", target, "Authorization: Bearer the-token-of-the-web")
				}
			}
		})
	}
}
