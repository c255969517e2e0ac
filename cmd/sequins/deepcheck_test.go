package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sequins/config"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/ports"
)

// deepLines runs check-config --deep on a configuration, and returns the line of each check, without its name.
func deepLines(t *testing.T, text string) (lines map[string]string, r result) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "deep.conf")
	writeFile(t, conf, text)
	r = sequins(t, "check-config", "--deep", conf)
	lines = make(map[string]string)
	for line := range strings.Lines(r.stdout) {
		level, rest, _ := strings.Cut(line, " ")
		check, text, found := strings.Cut(strings.TrimSpace(rest), ": ")
		if found {
			lines[check] = level + " " + text
		}
	}
	return lines, r
}

// base is a configuration that can be used: its store is on the disk of the test.
func base(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	addr, err := ports.Free()
	expect.NoError(t, err)
	return fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\n", demoSource(t, dir), filepath.Join(dir, "store"), addr)
}

func TestDeepCheck(t *testing.T) {
	lines, r := deepLines(t, base(t))
	for check, want := range map[string]string{
		"source": "ok 1 database, whose newest versions can be loaded", "local_store": "ok ", "files": "ok ",
	} {
		if got, found := lines[check]; !found || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", check, got, want)
		}
	}
	if r.code != exitOK {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// Checks run at the same time, so that none may change the configuration.
func TestDeepChecksLeaveTheConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	writeFile(t, file, "c2VjcmV0")
	c := config.Default()
	c.Source, c.Files = "abfss://c@a.dfs.core.windows.net/", map[string]string{"azure.account_key": file}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, check := range (deep{&c}).checks()[:2] { // files and source
		_, _ = check.run(ended)
	}
	if c.Azure.AccountKey != "" {
		t.Error("a secret was read into the configuration")
	}
}

// Finished blocks that a node loads are good, whatever they are cut by.
func TestDeepCheckOfFinishedBlocks(t *testing.T) {
	conf := base(t)
	source, _, _ := strings.Cut(strings.TrimPrefix(conf, "source = \""), "\"")
	versions, err := filepath.Glob(filepath.Join(source, "*", "[0-9]*"))
	expect.NoError(t, err)
	to := filepath.Join(filepath.Dir(versions[0]), "9999")
	sequins(t, "build", "--partitioner", "hadoop", versions[0], to).wants(t, exitOK)
	if lines, r := deepLines(t, conf); r.code != exitOK {
		t.Errorf("%q", lines["source"])
	}
}

// The newest version of each database is planned, with the fields that are configured for it.
func TestDeepFields(t *testing.T) {
	conf := base(t)
	source, _, _ := strings.Cut(strings.TrimPrefix(conf, "source = \""), "\"")
	f := harness.FixtureByName(t, "parquet-snappy")
	data, err := os.ReadFile(filepath.Join(f.Dir, f.Meta.Names[0]))
	expect.NoError(t, err)
	writeFile(t, filepath.Join(source, "users", "1", "_SUCCESS"), "")
	writeFile(t, filepath.Join(source, "users", "1", "part-0.parquet"), string(data))
	path := filepath.Join(source, "users", "1", "part-0.parquet")
	for text, want := range map[string]string{
		"":                             ": the fields that are set do not fit the records: key is not set; the fields are id, n, ",
		"[db.users]\nkey = \"nope\"\n": `: the fields that are set do not fit the records: key: there is no field "nope"; the fields are id, n, `,
		"[db.users]\nkey = \"id\"\nvalue = \"nope\"\n": `: the fields that are set do not fit the records: value: there is no field "nope"; the fields are id, n, `,
		"[db.users]\nkey = \"id\"\n":                   "ok 2 databases, whose newest versions can be loaded",
	} {
		lines, r := deepLines(t, conf+text)
		good := strings.HasPrefix(want, "ok ")
		if got := lines["source"]; !strings.Contains(got, want) || strings.Contains(got, path) == good {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if (r.code == exitOK) != good {
			t.Errorf("%q: exit code %d", text, r.code)
		}
	}
}

// Each fault is found by its check, which says what to do; the exit code is 1 if one has failed.
func TestDeepFaults(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "x")
	empty := t.TempDir()
	tests := map[string]struct{ conf, check, want string }{
		"no source":          {"source = \"/none/such\"\n", "source", "failed its databases cannot be listed"},
		"empty source":       {"source = \"" + empty + "\"\n", "source", "warning " + empty + " has no databases"},
		"store below a file": {"local_store = \"" + file + "/store\"\n", "local_store", "failed "},
		"webhook refused":    {"[events]\nwebhook = \"http://u:hunter2@127.0.0.1:1/x\"\n", "events.webhook", "failed dial tcp 127.0.0.1:1: connect: connection refused"},
		"webhook":            {"[events]\nwebhook = \"" + plain.URL + "\"\n", "events.webhook", "ok it can be reached"},
		"no webhook file":    {"[events]\nwebhook_file = \"/none/such\"\n", "files", "failed events.webhook_file: open /none/such: no such file or directory"},
		"collector's name":   {"[tracing]\notlp_endpoint = \"http://none.invalid:4318\"\n", "tracing.otlp_endpoint", "failed dial tcp: lookup none.invalid"},
		"agent's socket":     {"[datadog]\nurl = \"unix://" + file + "\"\n", "datadog.url", "failed dial unixgram " + file + ": connect: "},
		"advertised name": {"[sharding]\nenabled = true\nadvertised_hostname = \"none.invalid\"\n[zk]\nservers = [\"127.0.0.1:1\"]\n", "sharding.advertised_hostname",
			"failed lookup none.invalid"},
		"loopback name": {"[sharding]\nenabled = true\nadvertised_hostname = \"127.0.0.1\"\n[zk]\nservers = [\"127.0.0.1:1\"]\n", "sharding.advertised_hostname",
			"warning 127.0.0.1 is [::ffff:127.0.0.1], the loopback interface"},
		"no ZooKeeper": {"[sharding]\nenabled = true\nadvertised_hostname = \"127.0.0.1\"\n[zk]\nservers = [\"127.0.0.1:1\"]\n", "zk", "failed 127.0.0.1:1: connection: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lines, r := deepLines(t, replaceKeys(base(t), test.conf))
			if got := lines[test.check]; !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %q\nwant %q\n%s%s", got, test.want, r.stdout, r.stderr)
			}
			if failed := strings.Contains(r.stdout, "failed   "); failed != (r.code == exitFailure) || strings.Contains(r.stdout+r.stderr, "hunter2") {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// replaceKeys adds lines to a configuration, in place of those with the same key.
func replaceKeys(base, lines string) string {
	key, _, _ := strings.Cut(lines, " = ")
	var kept strings.Builder
	for line := range strings.Lines(base) {
		if !strings.HasPrefix(line, key+" = ") {
			kept.WriteString(line)
		}
	}
	return kept.String() + lines
}

// Certificates are checked as other nodes do.
func TestDeepCertificates(t *testing.T) {
	a, other := newAuthority(t, "ca"), newAuthority(t, "other")
	valid := func(days int) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Duration(days)*24*time.Hour + time.Hour) }
	}
	a.issue("good", valid(90))
	a.issue("late", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	a.issue("elsewhere", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"node7.example"} })
	a.issue("server only", func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1]; valid(90)(c) })
	other.issue("foreign", valid(90))
	cluster := "[sharding]\nenabled = true\nadvertised_hostname = \"127.0.0.1\"\n[zk]\nservers = [\"127.0.0.1:1\"]\n"
	for _, test := range []struct {
		a             *authority
		sharded, name string
		word          string // "" for good ones
	}{
		{a, cluster, "good", ""},
		{a, cluster, "late", "expired"},
		{a, cluster, "elsewhere", "other nodes will refuse it, as they reach this one by 127.0.0.1"},
		{a, cluster, "server only", "incompatible key usage"},
		{other, cluster, "foreign", "certificate signed by unknown authority"},
		{a, "", "good", ""},
		{a, "", "elsewhere", ""}, // other nodes do not ask for its names
		{a, "", "late", "it has expired at "},
	} {
		conf := filepath.Join(t.TempDir(), "c.conf")
		writeFile(t, conf, base(t)+test.sharded+fmt.Sprintf("[tls]\ncertificate = %q\nkey = %q\nca = %q\nclient_ca = %q\n",
			test.a.file(test.name+".pem"), test.a.file(test.name+"-key.pem"), a.file("ca.pem"), a.file("ca.pem")))
		c, _, err := config.Load(conf)
		expect.NoError(t, err)
		if _, err := (deep{&c}).checkFiles(t.Context()); (err != nil) != (test.word != "") || err != nil && !strings.Contains(err.Error(), test.word) {
			t.Errorf("%s, %q: %v, want %q", test.name, test.sharded, err, test.word)
		}
	}
}

// A check that does not end is given up, and holds up no other.
func TestDeepCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		checks := []deepCheck{
			{"hangs", func(context.Context) (string, error) { <-end; return "", nil }},
			{"heeds its deadline", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
			{"fast", func(context.Context) (string, error) { return "well", nil }},
		}
		var got []string
		begin := time.Now()
		all, _, _ := runDeep(t.Context(), checks)
		for _, f := range all {
			got = append(got, f.Level+" "+f.Check+": "+f.Text)
		}
		close(end)
		want := "failed hangs: no answer within 15s: what it asks is not reached, or hangs\nfailed heeds its deadline: context deadline exceeded\nok fast: well"
		if strings.Join(got, "\n") != want || time.Since(begin) > 17*time.Second {
			t.Errorf("after %s\n%s", time.Since(begin), strings.Join(got, "\n"))
		}
	})
}

// A configuration that is all in the environment can be checked without a file.
func TestCheckConfigOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{"SOURCE": demoSource(t, dir), "LOCAL_STORE": filepath.Join(dir, "store"), "BIND": "127.0.0.1:0"} {
		t.Setenv("SEQUINS_"+name, value)
	}
	cmd := command(t, "check-config", "--deep")
	cmd.Dir = t.TempDir()
	if r := finish(t, cmd); r.code != exitOK || !strings.Contains(r.stdout, "\nthe environment ") || !strings.Contains(r.stdout, "ok       source: 1 database, ") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	t.Setenv("SEQUINS_REFRESH_PERIOD", "soon")
	cmd = command(t, "check-config")
	cmd.Dir = t.TempDir()
	if r := finish(t, cmd); r.code != exitFailure || !strings.Contains(r.stderr, "SEQUINS_REFRESH_PERIOD: \"soon\" is not a duration") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
