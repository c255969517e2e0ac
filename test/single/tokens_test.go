//go:build integration

package single

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

const (
	webToken  = "the-token-of-the-web"
	nextToken = "the-next-token-of-the-web"
	opsToken  = "the-token-of-the-operators"
)

func hashed(token string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))) }

// asked is the status that a target has for a token, "" for none.
func asked(t *testing.T, n *process.Node, target, token string) int {
	t.Helper()
	return answered(t, n, target, token).Code
}

// answered returns the answer to GET with a token, or without one if it is "".
func answered(t *testing.T, n *process.Node, target, token string) *process.Response {
	t.Helper()
	c := n.Client()
	defer c.Close()
	header := ""
	if token != "" {
		header = "Authorization: Bearer " + token + "\r\n"
	}
	r, err := c.Do("GET", target, header)
	expect.NoError(t, err)
	return r
}

// TestTokens has a node that wants tokens, and changes their file while it runs.
func TestTokens(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	for _, db := range []string{"users", "words"} {
		writeVersion(t, source, db, "1", 2, 100, numbered("1"))
	}
	file := filepath.Join(t.TempDir(), "tokens")
	replace := func(text string) {
		t.Helper()
		expect.NoError(t, errors.Join(os.WriteFile(file+"~", []byte(text), 0o600), os.Rename(file+"~", file)))
	}
	ops := "ops " + hashed(opsToken) + " * pages\n"
	replace("# who reads what\nweb " + webToken + " users\n" + ops)
	requests := filepath.Join(t.TempDir(), "requests.log")
	c.Extra += "\nlog.level = \"debug\"\n"
	c.Sections = fmt.Sprintf("request_log_enable = true\nrequest_log_file = %q\n[auth]\ntokens_file = %q\n", requests, file)
	n := process.Start(t, c)
	n.WaitFor(t, "both databases are served", func() bool { return asked(t, n, "/readyz", "") == 200 })

	key := "/users/key-000007"
	for _, test := range []struct {
		target, token string
		want          int
	}{
		{key, webToken, 200}, {key, opsToken, 200}, {key, "", 401}, {key, nextToken, 401}, {key, hashed(opsToken), 401},
		{"/words/key-000007", webToken, 403}, {"/words/key-000007", opsToken, 200}, {"/none/key", webToken, 403}, {"/none/key", opsToken, 404},
		{key + "?explain", webToken, 403}, {key + "?explain", opsToken, 200}, {key + "?explain", "", 401},
		{"/", "", 401}, {"/", webToken, 403}, {"/", opsToken, 200}, {"/users", "", 401}, {"/users", opsToken, 200},
		{"/livez", "", 200}, {"/readyz", "", 200}, {"/healthz", "", 200},
	} {
		if got := asked(t, n, test.target, test.token); got != test.want {
			t.Errorf("%s with %q: %d, want %d", test.target, test.token, got, test.want)
		}
	}
	if body := n.Get(t, "/healthz").Body; string(body) != "{}\n" {
		t.Errorf("a stranger sees %s", body)
	}
	wantText(t, n.Metrics(t), `sequins_requests_total{code="401",db="",route="key"} 4`)

	t.Run("a file that changes is taken up", func(t *testing.T) {
		replace("web " + nextToken + " users\n" + ops)
		n.WaitFor(t, "the new token is known", func() bool { return asked(t, n, key, nextToken) == 200 })
		if got := asked(t, n, key, webToken); got != 401 {
			t.Errorf("the old token: %d", got)
		}
	})
	t.Run("one that is not good is not", func(t *testing.T) {
		replace(ops + "web " + nextToken + " users and words\n")
		n.WaitFor(t, "it is complained of", func() bool {
			return strings.Contains(n.Log(), "level=ERROR msg=\"files have changed and are not good; the old ones stay\" files=\"the tokens\" error=\""+file+":2: want:")
		})
		replace("")
		n.WaitFor(t, "the error about the empty file", func() bool { return strings.Contains(n.Log(), file+": no token in the file") })
		n.WaitFor(t, "the status has it", func() bool {
			return strings.Contains(string(answered(t, n, "/", opsToken).Body), `"tokens_error":"`+file+`: no token in the file`)
		})
		for token, want := range map[string]int{nextToken: 200, opsToken: 200, webToken: 401, "": 401} {
			if got := asked(t, n, key, token); got != want {
				t.Errorf("%q: %d, want %d", token, got, want)
			}
		}
	})
	t.Run("SIGHUP reads it too", func(t *testing.T) {
		before := strings.Count(n.Log(), "no token in the file")
		n.Signal(t, syscall.SIGHUP)
		n.WaitFor(t, "the error is logged again", func() bool { return strings.Count(n.Log(), "no token in the file") > before })
		n.WaitFor(t, "the metric says so", func() bool { return strings.Contains(n.Metrics(t), "sequins_config_last_reload_successful 0") })
		replace("web " + webToken + " *\n")
		n.Signal(t, syscall.SIGHUP)
		n.WaitFor(t, "it is good again", func() bool { return strings.Contains(n.Metrics(t), "sequins_config_last_reload_successful 1") })
		n.WaitFor(t, "the token is known", func() bool { return asked(t, n, "/words/key-000007", webToken) == 200 })
	})
	t.Run("a file that others can read is warned of", func(t *testing.T) {
		expect.NoError(t, os.Chmod(file, 0o644))
		n.WaitFor(t, "the warning", func() bool { return strings.Contains(n.Log(), file+" has mode 0644: others may read or write it") })
	})

	if code := n.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	log, err := os.ReadFile(requests)
	expect.NoError(t, err)
	wantText(t, string(log), " 200 GET "+key+" 3 ", " token=web\n", " token=ops\n")
	for _, token := range []string{webToken, nextToken, opsToken, hashed(opsToken)} {
		if strings.Contains(n.Log()+string(log), token) {
			t.Errorf("%s is in a log", token)
		}
	}
}
