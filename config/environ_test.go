package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// fromEnvironment parses a document in an environment.
func fromEnvironment(doc string, environ ...string) (Config, []*Problem, error) {
	c, d, err := parse("sequins.conf", []byte(doc), environ, nil)
	return c, d.warnings, err
}

// Variables set keys of every type, with and without a file.
func TestVariables(t *testing.T) {
	want := Default()
	want.Source, want.Bind, want.Debug.Pprof, want.RefreshPeriod, want.RequireSuccessFile = "/data", ":1", true, time.Minute, RequireFalse
	want.MaxDownloadBandwidth, want.Load.PeerBandwidth, want.Storage.BlockSize, want.Debug.Bind = 5<<20, 1e9, 8192, ":2"
	want.Sharding.Enabled, want.Sharding.Replication, want.Sharding.Weight, want.Sharding.Assignment = true, 3, 2.5, "balanced"
	want.ZK.Servers = []string{"a:1", "b"}
	want.Gate.RequiredKeys = map[string]string{"a.b": "^x+$", "c": ""}
	words := want.allDBs()
	words.Partitioner, words.Gate.MaxShrink = "spark", 0.5
	odd := want.allDBs()
	odd.KeepVersions = 2
	want.DB = map[string]DB{"words": words, "a__b": odd}
	environ := []string{
		"SEQUINS_SOURCE=/data", "SEQUINS_BIND=:1", "SEQUINS_DEBUG_PPROF=true", "SEQUINS_DEBUG_BIND=:2", "SEQUINS_REFRESH_PERIOD=1m", "SEQUINS_REQUIRE_SUCCESS_FILE=false",
		"SEQUINS_MAX_DOWNLOAD_BANDWIDTH_MB_PER_SECOND=5", "SEQUINS_LOAD_PEER_BANDWIDTH_MB_PER_SECOND=1GB/s",
		"SEQUINS_STORAGE_BLOCK_SIZE=8KiB", "SEQUINS_SHARDING_ENABLED=true", "SEQUINS_SHARDING_REPLICATION=3", "SEQUINS_SHARDING_WEIGHT=2.5", "SEQUINS_SHARDING_ASSIGNMENT=balanced",
		"SEQUINS_ZK_SERVERS=a:1, b", `SEQUINS_GATE_REQUIRED_KEYS={ "a.b" = "^x+$", c = "" }`, "SEQUINS_DB__words__PARTITIONER=spark",
		"SEQUINS_DB__words__GATE_MAX_SHRINK=0.5", "SEQUINS_DB__a__b__KEEP_VERSIONS=2", "SEQUINS_SHARDING_ZONE=",
		// Kubernetes sets these for services named sequins and sequins-headless; SEQUINS_TOKEN is for commands.
		"SEQUINS_PORT=tcp://10.0.0.1:9599", "SEQUINS_PORT_9599_TCP_ADDR=10.0.0.1", "SEQUINS_SERVICE_HOST=10.0.0.1", "SEQUINS_SERVICE_PORT_HTTP=9599",
		"SEQUINS_HEADLESS_SERVICE_PORT=1", "SEQUINS_HEADLESS_PORT_1_TCP=tcp://x", "SEQUINS_TOKEN=x", "PATH=/bin",
	}
	for _, doc := range []string{"", "source = \"relative\"\n[DB.words]\nPartitioner = \"kafka\"\n[Sharding]\nReplication = 1"} {
		got, warnings, err := fromEnvironment(doc, environ...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, -want +got\n%s", err, diff)
		}
		for _, w := range warnings {
			if !strings.Contains(w.Error(), "is written") {
				t.Errorf("%q: %v", doc, w)
			}
		}
	}
}

// Names of databases are case-sensitive, also in variables: that of one database does not configure another. Keys are not.
func TestVariablesOfDatabases(t *testing.T) {
	doc := "source = \"/d\"\n[DB.Words]\nKeep_Versions = 5\n[DB.\"w.1\"]\n"
	path := filepath.Join(t.TempDir(), "s.conf")
	for more, want := range map[string]map[string]string{
		"":                                {"db.words.partitioner": "'spark' SEQUINS_DB__words__PARTITIONER", "db.Words.keep_versions": "5 " + path + ":3", "db.WORDS.keep_versions": "7 SEQUINS_DB__WORDS__KEEP_VERSIONS"},
		"[DB.words]\nkeep_versions = 2\n": {"db.words.keep_versions": "2 " + path + ":6", "db.words.partitioner": "'spark' SEQUINS_DB__words__PARTITIONER", "db.Words.keep_versions": "5 " + path + ":3", "db.WORDS.keep_versions": "7 SEQUINS_DB__WORDS__KEEP_VERSIONS"},
	} {
		want[`db."w.1".key`] = "'k' SEQUINS_DB__w.1__KEY"
		expect.NoError(t, os.WriteFile(path, []byte(doc+more), 0o600))
		t.Setenv("SEQUINS_DB__words__PARTITIONER", "spark")
		t.Setenv("SEQUINS_DB__WORDS__KEEP_VERSIONS", "7")
		t.Setenv("SEQUINS_DB__w.1__KEY", "k")
		all, _, err := Settings(path)
		expect.NoError(t, err)
		got := make(map[string]string)
		for _, s := range all {
			if strings.HasPrefix(s.Key, "db.") {
				got[s.Key] = s.TOML() + " " + s.From
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", more, diff)
		}
	}
	_, _, err := fromEnvironment("source = \"/d\"\n[DB.Words]\nkeep_versions = 1\n", "SEQUINS_DB__words__KEEP_VERSIONS=0")
	if want := "SEQUINS_DB__words__KEEP_VERSIONS: must be at least 1, not 0"; report(err) != want {
		t.Errorf("got  %v\nwant %s", report(err), want)
	}
}

// Every key has a variable of its own, which sets it and is none of those that are ignored.
func TestEveryKeyHasAVariable(t *testing.T) {
	seen := make(map[string]string)
	for _, k := range keys() {
		v := Variable(strings.Replace(k.key, "<name>", "words", 1))
		if other, found := seen[v]; found || notKeys.MatchString(v) {
			t.Errorf("%s is of %s and %s, or ignored", v, k.key, other)
		}
		seen[v] = k.key
		set, unknown := flagsOf([]string{v + "=x"})
		if len(set) != 1 || len(unknown) != 0 {
			t.Errorf("%s: %v, %v", v, set, unknown)
		}
	}
}

// Every key takes its value from a variable as sequins config prints it: here the defaults, and those of a database.
func TestEveryVariableIsRead(t *testing.T) {
	_, d, err := parse("", nil, []string{"SEQUINS_SOURCE=/d"}, nil)
	expect.NoError(t, err)
	want := Default()
	want.Source = "/d"
	words := want.allDBs()
	want.DB = map[string]DB{"words": words}
	var environ []string
	for _, s := range slices.Concat(d.settings("", reflect.ValueOf(want)), d.settings("db.words", reflect.ValueOf(words))) {
		value := fmt.Sprint(s.Value)
		switch v := s.Value.(type) {
		case []string:
			value = strings.Join(v, ",")
		case map[string]string:
			value = s.TOML()
		}
		environ = append(environ, Variable(s.Key)+"="+value)
	}
	if len(environ) != len(keys()) {
		t.Errorf("%d variables for %d keys", len(environ), len(keys()))
	}
	got, warnings, err := fromEnvironment("", environ...)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(warnings) > 0 {
		t.Errorf("%v, %v, -want +got\n%s", err, warnings, diff)
	}
}

func TestVariableProblems(t *testing.T) {
	for environ, want := range map[string]string{
		"SEQUINS_MAX_PARALLEL_LOADS=4x":                  "SEQUINS_MAX_PARALLEL_LOADS: must be an integer",
		"SEQUINS_DEBUG_PPROF=yes":                        "SEQUINS_DEBUG_PPROF: must be true or false",
		"SEQUINS_SETTLE=5":                               `SEQUINS_SETTLE: "5" is not a duration such as "10m" or "800us"`,
		"SEQUINS_LOAD_PEER_BANDWIDTH_MB_PER_SECOND=-1":   "SEQUINS_LOAD_PEER_BANDWIDTH_MB_PER_SECOND: must be 0 or from 256KiB/s to 1TiB/s, not -1MiB/s",
		"SEQUINS_LOAD_PEER_BANDWIDTH_MB_PER_SECOND=fast": `SEQUINS_LOAD_PEER_BANDWIDTH_MB_PER_SECOND: "fast" is not a rate such as "50MiB/s"`,
		"SEQUINS_DB__words__KEEP_VERSIONS=0":             "SEQUINS_DB__words__KEEP_VERSIONS: must be at least 1, not 0",
		"SEQUINS_DB__we/ird__ALLOW_EMPTY=true":           `sequins.conf: db."we/ird": "we/ird" cannot be the name of a database`,
		"SEQUINS_GATE_REQUIRED_KEYS={a":                  "SEQUINS_GATE_REQUIRED_KEYS: must be a table of strings",
		"SEQUINS_GATE_REQUIRED_KEYS={}\nbind='x'":        "SEQUINS_GATE_REQUIRED_KEYS: must be a table of strings",
		"SEQUINS_ZK_SERVERS=a:b:c":                       `SEQUINS_ZK_SERVERS: "a:b:c" is not an address of the form host:port`,
		"SEQUINS_SHARDING_ADVERTISED_HOSTNAME=a b":       `SEQUINS_SHARDING_ADVERTISED_HOSTNAME: "a b" is neither a host name nor an IP address; the port is that of bind`,
	} {
		if _, _, err := fromEnvironment("source = \"/d\"", environ); report(err) != want {
			t.Errorf("%s\ngot  %v\nwant %s", environ, report(err), want)
		}
	}
	for name, near := range map[string]string{
		"SEQUINS_SHARDING_REPLICATON": "SEQUINS_SHARDING_REPLICATION", "SEQUINS_DB_words_PARTITIONER": "SEQUINS_DB__<name>__PARTITIONER",
		"SEQUINS_DB____PARTITIONER": "SEQUINS_PARTITIONER",
	} {
		_, warnings, err := fromEnvironment("source = \"/d\"", name+"=1")
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0].Error(), name+": sets no key; did you mean "+near) {
			t.Errorf("%s: %v, %v", name, warnings, err)
		}
	}
}

// Load reads the environment of the process.
func TestLoadReadsTheEnvironment(t *testing.T) {
	t.Setenv("SEQUINS_SOURCE", "/d")
	c, _, err := Load("")
	if err != nil || c.Source != "/d" {
		t.Errorf("%v, %v", c.Source, err)
	}
}

// A byte order mark is no part of the first key.
func TestByteOrderMark(t *testing.T) {
	c, warnings, err := load("\ufeffsource = \"/d\"\nbind = \"x\"")
	if report(err) != `sequins.conf:2: bind: "x" is not an address of the form host:port` || len(warnings) > 0 || c.Source != "/d" {
		t.Errorf("%v, %v, %v", c.Source, warnings, err)
	}
}

// FuzzVariables sets a random variable: nothing panics, and what is loaded is valid.
func FuzzVariables(f *testing.F) {
	f.Add("SHARDING_ZONE", "a")
	f.Add("SHARDING_SECRET_FILE", "/s")
	f.Add("GATE_REQUIRED_KEYS", "{ a = \"b\" }")
	f.Add("DB__a__b__KEY", "k")
	f.Fuzz(func(t *testing.T, name, value string) {
		c, _, err := parse("f.conf", []byte("source = \"/d\""), []string{variablePrefix + name + "=" + value}, nil)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("loaded, but not valid: %v", err)
			}
		}
	})
}

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // those of whoever runs the tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, variablePrefix) {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}
