//go:build integration

package hdfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	"go.uber.org/goleak"

	"sequins/source"
	"sequins/source/hdfs"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// What toxiproxy starts does not always end with it.
func TestMain(m *testing.M) {
	const toxiproxy = "github.com/Shopify/toxiproxy/v2"
	goleak.VerifyTestMain(m,
		goleak.Cleanup(func(code int) {
			process.RemoveBinary()
			os.Exit(code)
		}),
		goleak.IgnoreAnyFunction("github.com/jcmturner/gokrb5/v8/client.(*Client).enableAutoSessionRenewal.func1"), // a source has no end
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).read"),
		goleak.IgnoreAnyFunction(toxiproxy+".(*ToxicLink).write"),
		goleak.IgnoreAnyFunction(toxiproxy+"/toxics.(*ToxicStub).Run"))
}

// A cluster is one of the harness's, and a client of the library's own that writes to it.
type cluster struct {
	*harness.Harness
	conf     string // HADOOP_CONF_DIR
	namenode string // host:port of its only one, or of the first
	other    string // of the second
	writer   *lib.Client
}

// start starts a cluster. Its client is closed before it is.
func start(t testing.TB, options string) *cluster {
	t.Helper()
	h := harness.Start(t)
	r := h.Do(t, "dfs start "+options)
	c := &cluster{Harness: h, conf: r["conf"], namenode: r["nn"], other: r["nn1"]}
	if c.namenode == "" {
		c.namenode = r["nn0"]
	}
	addresses := []string{c.namenode}
	if c.other != "" {
		addresses = append(addresses, c.other)
	}
	var err error
	c.writer, err = lib.NewClient(lib.ClientOptions{Addresses: addresses, User: superuser})
	expect.NoError(t, err)
	t.Cleanup(func() { c.writer.Close() })
	return c
}

// superuser owns the cluster: it is who runs the harness.
var superuser = os.Getenv("USER")

func init() {
	if superuser == "" {
		superuser = "root"
	}
	if err := os.Setenv("HADOOP_USER_NAME", superuser); err != nil {
		panic(err)
	}
}

// open makes a source of a directory, with short limits.
func (c *cluster) open(t testing.TB, root string, change func(*hdfs.Options)) *hdfs.Source {
	t.Helper()
	o := hdfs.Options{URL: "hdfs://" + c.namenode + root, Timeout: 5 * time.Second, RetryFor: 30 * time.Second}
	if change != nil {
		change(&o)
	}
	s, err := hdfs.New(o)
	expect.NoError(t, err)
	return s
}

func (c *cluster) write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := c.writer.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	expect.NoError(t, c.writer.MkdirAll(path.Dir(name), 0o755))
	f, err := c.writer.Create(name)
	expect.NoError(t, err)
	for len(data) > 0 { // in one go, the library writes packets that the datanode finds too long
		n := min(len(data), 1<<16)
		if _, err := f.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		data = data[n:]
	}
	for err = f.Close(); lib.IsErrReplicating(err); err = f.Close() { // until enough datanodes have said that they have it
		time.Sleep(time.Millisecond)
	}
	expect.NoError(t, err)
}

// dir is a directory of the cluster that no other test uses: a place of the conformance suite.
type dir struct {
	*cluster
	root string
}

var dirs atomic.Int64

func (c *cluster) newDir() dir { return dir{c, fmt.Sprintf("/test-%d", dirs.Add(1))} }

func (d dir) Source(t *testing.T) source.Source {
	d.Mkdir(t, ".")
	return d.open(t, d.root, nil)
}

func (d dir) Put(t *testing.T, name string, data []byte) {
	t.Helper()
	d.write(t, path.Join(d.root, name), data)
}

func (d dir) Mkdir(t *testing.T, name string) bool {
	t.Helper()
	expect.NoError(t, d.writer.MkdirAll(path.Join(d.root, name), 0o755))
	return true
}

func (d dir) Remove(t *testing.T, name string) {
	t.Helper()
	expect.NoError(t, d.writer.Remove(path.Join(d.root, name)))
}

// says fails unless an error is there and its text holds every part.
func says(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("%v, which does not say %q", err, p)
		}
	}
}
