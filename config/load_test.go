package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
)

// load parses a document as the file sequins.conf.
func load(doc string, flags ...Flag) (Config, []*Problem, error) {
	c, d, err := parse("sequins.conf", []byte(doc), nil, flags)
	return c, d.warnings, err
}

// report is the error as a person sees it, or "".
func report(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEmptyFileIsDefault(t *testing.T) {
	got, warnings, err := load(`source = "/data"`)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	want := Default()
	want.Source = "/data"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an empty file differs from the defaults (-want +got):\n%s", diff)
	}
}

func TestDefaultsOfOlderFiles(t *testing.T) {
	want := Config{
		Bind:                 "0.0.0.0:9599",
		LocalStore:           "/var/sequins/",
		RequireSuccessFile:   RequireAuto,
		Settle:               30 * time.Second,
		Partitioner:          "auto",
		VersionRemoveTimeout: 10 * time.Minute,
		KeepVersions:         1,
		DBRemoveTimeout:      time.Hour,
		Storage:              Storage{Compression: "fsst", BlockSize: 4096},
		Load:                 LoadKeys{Memory: 268435456, CheckDisk: true, FromPeers: true, PeerBandwidth: 100 << 20},
		Sharding: Sharding{Replication: 2, MinReplication: 1, TimeToConverge: 10 * time.Second,
			ProxyTimeout: 100 * time.Millisecond, ClusterName: "sequins", Weight: 1, Role: "node"},
		ZK:      ZK{Servers: []string{"localhost:2181"}, SessionTimeout: 10 * time.Second},
		Log:     Log{Level: "info", Format: "text"},
		HTTP:    HTTP{AllowedOrigins: []string{}, Compression: []string{}},
		Batch:   Batch{MaxBytes: 64 << 20},
		Redis:   Redis{IdleTimeout: 10 * time.Minute},
		Tracing: Tracing{Sample: 0.01},
		Debug:   Debug{RequestLogFile: "stdout", RequestLogSample: 1},
	}
	if diff := cmp.Diff(want, Default()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestEveryOldKey(t *testing.T) {
	got, warnings, err := Load("testdata/every-old-key.conf")
	expect.NoError(t, err)
	want := Config{
		Source:               "hdfs://namenode:8020/data/sequins",
		Bind:                 "127.0.0.1:9600",
		LocalStore:           "/mnt/sequins",
		MaxParallelLoads:     4,
		ThrottleLoads:        800 * time.Microsecond,
		RefreshPeriod:        10 * time.Minute,
		RequireSuccessFile:   RequireTrue,
		Settle:               30 * time.Second,
		ContentType:          "application/json",
		Partitioner:          "auto",
		MaxDownloadBandwidth: 50 << 20,
		VersionRemoveTimeout: 10 * time.Minute,
		KeepVersions:         1,
		DBRemoveTimeout:      time.Hour,
		Storage:              Storage{Compression: "none", BlockSize: 8192},
		Load:                 LoadKeys{Memory: 256 << 20, CheckDisk: true, FromPeers: true, PeerBandwidth: 100 << 20},
		S3: S3{Region: "us-west-1", AccessKeyID: "AKIAIOSFODNN7EXAMPLE",
			SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
		Sharding: Sharding{Enabled: true, Replication: 3, MinReplication: 2,
			TimeToConverge: 20 * time.Second, ProxyTimeout: 200 * time.Millisecond,
			ProxyStageTimeout: 50 * time.Millisecond, ClusterName: "words",
			AdvertisedHostname: "node1.example.com", ShardID: "1",
			Weight: 1, Role: "node"},
		ZK:      ZK{Servers: []string{"zk1:2181", "zk2:2181"}, SessionTimeout: 30 * time.Second},
		Log:     Log{Level: "info", Format: "text"},
		HTTP:    HTTP{AllowedOrigins: []string{}, Compression: []string{}},
		Batch:   Batch{MaxBytes: 64 << 20},
		Redis:   Redis{IdleTimeout: 10 * time.Minute},
		Tracing: Tracing{Sample: 0.01},
		Debug: Debug{Bind: "localhost:6060", Pprof: true, RequestLogEnable: true,
			RequestLogFile: "/var/log/sequins-requests.log", RequestLogSample: 1},
		Datadog: Datadog{URL: "localhost:8125"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	var keys []string
	for _, w := range warnings {
		if w.Line == 0 || w.File != "testdata/every-old-key.conf" {
			t.Errorf("a warning without its place: %v", w)
		}
		keys = append(keys, w.Key)
	}
	if diff := cmp.Diff([]string{"bind", "write_buffer_size", "goforit_flag_json_path", "s3.max_retries", "sharding.max_replication", "zk.connect_timeout", "debug.expvars", "test"}, keys); diff != "" {
		t.Errorf("keys warned of (-want +got):\n%s", diff)
	}
}

// Older files were read without regard to case, and took a bare 0 for a duration.
func TestHabitsOfOlderFiles(t *testing.T) {
	got, warnings, err := load("Source = \"/data\"\nrefresh_period = 0\n[Sharding]\nReplication = 3")
	expect.NoError(t, err)
	if got.Source != "/data" || got.RefreshPeriod != 0 || got.Sharding.Replication != 3 {
		t.Errorf("got source %q, refresh_period %v, replication %d", got.Source, got.RefreshPeriod, got.Sharding.Replication)
	}
	want := "sequins.conf:1: source: is written in lower case, not Source"
	if len(warnings) != 4 || warnings[0].Error() != want {
		t.Errorf("warnings %v, want four, the first %q", warnings, want)
	}
}

// Tables of databases, and keys that a flag sets, are found in any case too.
func TestOtherCasesCount(t *testing.T) {
	got, warnings, err := load("Source = \"/data\"\n[DB.words]\nallow_empty = true\n[Debug]\nBind = \":1\"",
		Flag{Name: "--source", Key: "source", Value: "/other"}, Flag{Name: "--debug-bind", Key: "debug.bind", Value: ":2"})
	expect.NoError(t, err)
	if !got.DB["words"].AllowEmpty || got.Source != "/other" || got.Debug.Bind != ":2" {
		t.Errorf("got source %q, debug.bind %q, databases %v", got.Source, got.Debug.Bind, got.DB)
	}
	for _, w := range warnings {
		if !strings.Contains(w.Error(), "is written") {
			t.Errorf("warning %v", w)
		}
	}
}

// More memory than there is for a load is warned of, with both figures.
func TestMoreMemoryThanThereIs(t *testing.T) {
	_, warnings, err := load("source = \"/data\"\n[load]\nmemory = \"4096 TiB\"")
	want := "sequins.conf:3: load.memory: 4096TiB is more than the " + machineMemory().String() + " of memory of this machine or its container"
	if err != nil || len(warnings) != 1 || warnings[0].Error() != want {
		t.Errorf("%v, warnings %v; want %q", err, warnings, want)
	}
	if m := machineMemory(); m < 64<<20 || m > 1<<50 {
		t.Errorf("this machine has %s", m)
	}
}

// Two loads fit into a small machine or container, as far as the minimum allows.
func TestComputedMemoryLimit(t *testing.T) {
	c := Default()
	least := c.minMemoryLimit()
	normal := max(2<<30, least+loadProcessSpare)
	for _, test := range []struct{ machine, want Size }{
		{0, normal}, {64 * normal, normal}, {2 * normal, normal}, {2*least + 2<<20, least + 1<<20}, {least, least}, {1 << 20, least},
	} {
		if got := c.computedLimit(test.machine); got != test.want {
			t.Errorf("with %s of memory: %s, want %s", test.machine, got, test.want)
		}
	}
	if c.Load.MemoryLimit = least; c.LoadMemoryLimit() != least {
		t.Errorf("a configured limit becomes %s", c.LoadMemoryLimit())
	}
}

func TestDatabasesStartFromTheRestOfTheFile(t *testing.T) {
	got, _, err := load(`
		source = "/data"
		content_type = "text/plain"
		require_success_file = true
		[db.words]
		content_type = "application/json"
		[db."a.b"]
		partitioner = "spark"
		allow_empty = true
		require_success_file = false`)
	expect.NoError(t, err)
	want := map[string]DB{
		"words": {RequireSuccessFile: RequireTrue, ContentType: "application/json", Partitioner: "auto", KeepVersions: 1},
		"a.b":   {RequireSuccessFile: RequireFalse, AllowEmpty: true, ContentType: "text/plain", Partitioner: "spark", KeepVersions: 1},
		"other": {RequireSuccessFile: RequireTrue, ContentType: "text/plain", Partitioner: "auto", KeepVersions: 1},
	}
	for name, db := range want {
		if diff := cmp.Diff(db, got.ForDB(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFlagsComeBeforeTheFile(t *testing.T) {
	got, _, err := load("source = \"relative\"\nbind = \"nowhere\"",
		Flag{Name: "--source", Key: "source", Value: "/data"}, Flag{Name: "--bind", Key: "bind", Value: ":80"}, Flag{Name: "--debug-bind", Key: "debug.bind", Value: ":81"})
	expect.NoError(t, err)
	if got.Source != "/data" || got.Bind != ":80" || got.Debug.Bind != ":81" {
		t.Errorf("got %q, %q, %q", got.Source, got.Bind, got.Debug.Bind)
	}
	_, _, err = load(`bind = ":80"`, Flag{Name: "--source", Key: "source", Value: "x"}, Flag{Name: "--debug-bind", Key: "debug.bind", Value: "y"})
	want := "--source: \"x\" is not an absolute path\n--debug-bind: \"y\" is not an address of the form host:port"
	if report(err) != want {
		t.Errorf("got  %s\nwant %s", report(err), want)
	}
}

func TestLoadWithoutAFile(t *testing.T) {
	got, _, err := Load("", Flag{Name: "--source", Key: "source", Value: "/data"})
	want := Default()
	want.Source = "/data"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, _, err := Load(filepath.Join(t.TempDir(), "none.conf")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}

func TestHugeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge.conf")
	expect.NoError(t, os.WriteFile(path, []byte(strings.Repeat("# x\n", maxFile/4)+"#"), 0o600))
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), "exceeds its size limit of 262144 bytes") {
		t.Errorf("a file over the limit: %v", err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.conf"), filepath.Join(dir, "b.conf")
	if got := Find([]string{a, b}); got != "" {
		t.Errorf("found %q where there is nothing", got)
	}
	for _, path := range []string{b, a} { // the second is found before the first is there
		expect.NoError(t, os.WriteFile(path, nil, 0o600))
		if got := Find([]string{a, b}); got != path {
			t.Errorf("found %q, want %q", got, path)
		}
	}
	if want := []string{"sequins.conf", "/etc/sequins.conf"}; !cmp.Equal(want, SearchPath) {
		t.Errorf("search path %v", SearchPath)
	}
}

func TestManyProblemsAreCutShort(t *testing.T) {
	doc := strings.Builder{}
	for i := range 60 {
		doc.WriteString(strings.Repeat("x", i+1) + " = 1\n")
	}
	_, _, err := load(doc.String())
	if lines := strings.Split(report(err), "\n"); len(lines) != 51 || lines[50] != "and 11 more" {
		t.Errorf("reported %d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestLongKeysAreCutShort(t *testing.T) {
	_, _, err := load("source = \"/d\"\n" + strings.Repeat("ab", maxFile/4) + " = 1")
	if got := report(err); len(got) > 1100 || !strings.HasPrefix(got, "sequins.conf:2: abab") || !strings.HasSuffix(got, "…") {
		t.Errorf("reported %d bytes: %.200s", len(got), got)
	}
}

func TestRequireSuccessFile(t *testing.T) {
	for text, want := range map[string]Require{"true": RequireTrue, "false": RequireFalse, `"auto"`: RequireAuto} {
		got, _, err := load("source = \"/data\"\nrequire_success_file = " + text)
		if err != nil || got.RequireSuccessFile != want || got.ForDB("x").RequireSuccessFile != want {
			t.Errorf("%s: %v, %v", text, got.RequireSuccessFile, err)
		}
	}
}

// A source within the local store, beside what the node owns, is how older files can have it.
func TestSourceInTheLocalStore(t *testing.T) {
	got, warnings, err := load("source = \"/srv/sequins/backend\"\nlocal_store = \"/srv/sequins\"")
	if err != nil || got.Source != "/srv/sequins/backend" {
		t.Fatal(err)
	}
	want := `sequins.conf:1: source: "/srv/sequins/backend" is within the local store, "/srv/sequins"`
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), want) {
		t.Errorf("warnings %v, want %q", warnings, want)
	}
}
