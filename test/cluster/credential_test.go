//go:build integration

package cluster

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"sequins/test/expect"
	"sequins/test/process"
)

const (
	clusterSecret = "the-secret-of-the-cluster"
	showSecret    = "X-Sequins-Cluster: " + clusterSecret + "\r\n"
	clientToken   = "the-token-of-the-web"
	showToken     = "Authorization: Bearer " + clientToken + "\r\n"
	pagesToken    = "the-token-of-the-operators"
)

// An impostor listens on an address that is published in ZooKeeper, and keeps what it is sent.
type impostor struct {
	addr     string
	mu       sync.Mutex
	requests []string
}

func startImpostor(t *testing.T) *impostor {
	t.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort(clientIP, "0"))
	expect.NoError(t, err)
	i := &impostor{addr: ln.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.requests = append(i.requests, string(request))
		w.WriteHeader(http.StatusNotImplemented) // the next one is asked
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(ln) //nolint:errcheck // it is closed
	}()
	t.Cleanup(func() {
		server.Close() //nolint:errcheck // nothing is lost
		<-done
	})
	return i
}

func (i *impostor) seen() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.requests...)
}

// publish has the impostor advertised as a holder of every partition of a version.
func (i *impostor) publish(t *testing.T, l *look, c *cluster, version string) {
	t.Helper()
	for p := range c.data.partitions {
		path := fmt.Sprintf("/%s/v1/partitions/%s/%s/%05d@%s", c.name, db, version, p, i.addr)
		if _, err := l.conn.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
}

// newGuarded makes a cluster that wants tokens, of one node that has everything and a router.
func newGuarded(t *testing.T, z *zookeeper) (c *cluster, holder, router *member) {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(tokens, []byte("web "+clientToken+" "+db+"\nops "+pagesToken+" * pages\n"), 0o600))
	c = newCluster(t, z, settings{
		data: dataset{keys: 300, partitions: 4}, members: 1, replication: 1, extra: fmt.Sprintf("auth.tokens_file = %q\n", tokens),
		sharding: []string{fmt.Sprintf("secret = %q", clusterSecret)},
	})
	holder, router = c.members[0], c.add(t, `role = "router"`)
	for _, m := range c.members {
		m.config.Header = "Authorization: Bearer " + pagesToken + "\r\n"
	}
	return c, holder, router
}

// TestCredentials: nodes answer ?proxy= to those alone that show the secret of the cluster. A client's token is not sent
// to an address that is known from ZooKeeper.
func TestCredentials(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c, holder, router := newGuarded(t, z)
	version := versionName(1)
	c.begin(t, version)

	key := c.data.ofEach(version)[0]
	for header, want := range map[string]int{
		showSecret: 200, showSecret + showToken: 200, "": 403, showToken: 403, "X-Sequins-Cluster: another-secret-of-a-cluster\r\n" + showToken: 403,
	} {
		for _, name := range []string{version, "true"} {
			r := ask(t, holder, "/"+db+"/"+key+"?proxy="+name, header)
			value, _ := c.data.value(key, version)
			if r.Code != want || (want == 200) != (string(r.Body) == value) || want != 200 && r.Version() != "" {
				t.Errorf("?proxy=%s with %q: %d of version %q: %s", name, header, r.Code, r.Version(), r.Body)
			}
		}
	}

	i := startImpostor(t)
	i.publish(t, z.look(t), c, version)
	process.Eventually(t, "the impostor is asked", func() bool {
		for _, key := range c.data.ofEach(version) {
			r := ask(t, router, "/"+db+"/"+key, showToken)
			if value, _ := c.data.value(key, version); r.Code != 200 || string(r.Body) != value {
				t.Fatalf("%s beside an impostor: %d: %s", key, r.Code, r.Body)
			}
		}
		return len(i.seen()) >= 5
	})
	for _, request := range i.seen() {
		if !strings.Contains(request, "proxy="+version) && strings.HasPrefix(request, "GET /"+db+"/") {
			t.Errorf("a request for a key that is not of a peer: %q", request)
		}
		for _, word := range []string{clientToken, pagesToken, "Authorization"} {
			if strings.Contains(request, word) {
				t.Errorf("the impostor was sent %q", request)
			}
		}
	}
}

// ask asks a member with further lines of a header.
func ask(t *testing.T, m *member, target, header string) *process.Response {
	t.Helper()
	client := m.node.Client()
	defer client.Close()
	r, err := client.Do("GET", target, header)
	expect.NoError(t, err)
	return r
}

// TestRetiredVersionsGo: in a cluster without a secret, anybody can ask for a version that has been replaced, and
// thereby keep it for a bounded time only.
func TestRetiredVersionsGo(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{data: dataset{keys: 300, partitions: 4}, members: 1, replication: 1,
		extra: "version_remove_timeout = \"2s\"\n"})
	m, first, second := c.members[0], versionName(1), versionName(2)
	c.begin(t, first)
	c.publish(t, second)
	client := m.node.Client()
	defer client.Close()
	target := "/" + db + "/" + c.data.ofEach(first)[0]
	current := func() string {
		r, err := client.Get(target)
		expect.NoError(t, err)
		return r.Version()
	}
	m.node.WaitFor(t, "the second version is served", func() bool { return current() == second })
	kept := 0
	m.node.WaitFor(t, "the first version is gone, though it is asked for", func() bool {
		r, err := client.Get(target + "?proxy=" + first)
		expect.NoError(t, err)
		if r.Code == 200 && r.Version() == first {
			kept++
		}
		return r.Code == 501
	})
	if kept < 10 {
		t.Errorf("it was answered from %d times after it was replaced: this shows nothing", kept)
	}
	m.node.WaitFor(t, "its files are gone", func() bool {
		_, err := os.Stat(filepath.Join(m.config.Store, "data", db, first))
		return os.IsNotExist(err)
	})
}
