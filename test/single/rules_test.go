//go:build integration

package single

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestDatabaseGoesForGood removes one of two databases from the source: it is served on, over a restart too, until its
// time and several looks have passed, and then deleted. A database that returns in time stays.
func TestDatabaseGoesForGood(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\ndb_remove_timeout = \"1h\""
	for _, db := range []string{"gone", "back", "stays"} {
		writeVersion(t, source, db, "1", 2, 100, numbered("1"))
	}
	n := process.Start(t, c)
	all := []string{"gone", "back", "stays"}
	served := func(dbs ...string) {
		t.Helper()
		for _, db := range dbs {
			n.WaitCurrent(t, db, "1")
			n.Expect(t, "/"+db+"/key-000042", 200, "1", "1/42")
		}
	}
	served(all...)
	for _, db := range []string{"gone", "back"} {
		expect.NoError(t, os.Rename(filepath.Join(source, db), filepath.Join(source, "_"+db)))
	}
	absent := func(count int) {
		t.Helper()
		n.WaitFor(t, fmt.Sprint(count, " databases are absent"), func() bool {
			return strings.Count(string(n.Get(t, "/").Body), "is not in the source since") == count
		})
	}
	absent(2)
	served(all...)
	n.Stop(t)
	n = process.Start(t, c)
	absent(2)
	served(all...)
	expect.NoError(t, os.Rename(filepath.Join(source, "_back"), filepath.Join(source, "back")))
	absent(1)

	conf, err := os.ReadFile(n.Conf)
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(n.Conf, []byte(strings.Replace(string(conf), `"1h"`, `"1ms"`, 1)), 0o644))
	n.Signal(t, syscall.SIGHUP)
	n.WaitFor(t, "the database is deleted", func() bool {
		_, err := os.Stat(filepath.Join(c.Store, "data", "gone"))
		return os.IsNotExist(err) && n.Get(t, "/gone/key-000042").Code == 404
	})
	absent(0)
	served("back", "stays")
}

// TestUnreadyIsNotAbsent asks a node for keys of databases that it knows and cannot serve yet, of a broken one and of
// one that does not exist; and whether it is ready.
func TestUnreadyIsNotAbsent(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	ask := func(n *process.Node, code int, retry string, targets ...string) {
		t.Helper()
		for _, target := range targets {
			r := n.Get(t, target)
			if r.Code != code || r.Header.Get("Retry-After") != retry || r.Version() != "" {
				t.Errorf("%s: %d, %v, %q", target, r.Code, r.Header, r.Body)
			}
		}
	}
	away := source + ".away"
	expect.NoError(t, os.Rename(source, away))
	n := process.Start(t, c) // which has never read its source
	n.WaitLog(t, "the source cannot be listed; serving goes on")
	ask(n, http.StatusServiceUnavailable, "1", "/db/key-000042", "/none/key-000042")
	ask(n, http.StatusServiceUnavailable, "", "/readyz")

	expect.NoError(t, os.Rename(away, source))
	writeVersion(t, source, "db", "1", 1, 100, numbered("1"))
	makeBrokenDB(t, source, "broken")
	n.WaitCurrent(t, "db", "1")
	waitError(t, n, "broken", "1")
	ask(n, http.StatusServiceUnavailable, "1", "/broken/key-000042")
	ask(n, http.StatusNotFound, "", "/none/key-000042")
	ready := func(target string, code int) {
		t.Helper()
		n.WaitFor(t, fmt.Sprintf("%s is %d", target, code), func() bool { return n.Get(t, target).Code == code })
	}
	ready("/readyz", 200)
	ready("/readyz?db=db", 200)
	ready("/readyz?db=broken", 503)
	makeBrokenDB(t, source, "later")
	waitError(t, n, "later", "1")
	ready("/readyz", 200)
	n.Stop(t)

	n = process.Start(t, c) // with two that are broken at its start
	ready("/readyz", 200)
	n.Expect(t, "/db/key-000042", 200, "1", "1/42")
}

// makeBrokenDB makes a database whose one version has a file of no known format.
func makeBrokenDB(t *testing.T, source, db string) {
	t.Helper()
	tmp := filepath.Join(source, "_"+db)
	copyFile(t, filepath.Join(process.Root(), "go.mod"), filepath.Join(tmp, "1", "part-r-00000"), -1)
	expect.NoError(t, os.WriteFile(filepath.Join(tmp, "1", "_SUCCESS"), nil, 0o644))
	expect.NoError(t, os.Rename(tmp, filepath.Join(source, db)))
}

// TestNamesOfTheStore has versions and databases whose names are those of files of the store, and restarts.
func TestNamesOfTheStore(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	names := []string{"MANIFEST.json", "SERVED", "data", "sequins.lock"}
	for _, name := range names {
		writeVersion(t, source, name, "1", 1, 100, numbered("1"))
		writeVersion(t, source, "versions", name, 1, 100, numbered(name))
	}
	n := process.Start(t, c)
	for range 2 {
		for _, name := range names {
			n.WaitCurrent(t, name, "1")
			n.Expect(t, "/"+name+"/key-000042", 200, "1", "1/42")
		}
		n.WaitCurrent(t, "versions", "sequins.lock") // the greatest of the names
		n.Expect(t, "/versions/key-000042", 200, "sequins.lock", "sequins.lock/42")
		n.Stop(t)
		n = process.Start(t, c)
		expectFirst(t, n, "/versions/key-000042", "sequins.lock", "sequins.lock/42")
	}
}

// TestDatabaseMadeAgain deletes a database for good and makes it again, with a version of the same name and other data:
// values and Last-Modified are those of the new files.
func TestDatabaseMadeAgain(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\ndb_remove_timeout = \"1ms\""
	writeVersion(t, source, "stays", "1", 1, 100, numbered("1"))
	n := process.Start(t, c)
	for i, value := range []string{"old", "new"} {
		writeVersion(t, source, "db", "1", 1, 100, numbered(value))
		modified := time.Date(2020+i, 1, 2, 3, 4, 5, 0, time.UTC)
		expect.NoError(t, os.Chtimes(filepath.Join(source, "db", "1", "part-r-00000"), modified, modified))
		expect.NoError(t, os.Chtimes(filepath.Join(source, "db", "1", "_SUCCESS"), modified, modified))
		var r *process.Response
		n.WaitFor(t, "the "+value+" value is served", func() bool {
			r = n.Get(t, "/db/key-000042")
			return string(r.Body) == value+"/42"
		})
		if i == 1 && r.Header.Get("Last-Modified") != modified.Format(http.TimeFormat) {
			t.Errorf("%s: Last-Modified is %s", value, r.Header.Get("Last-Modified"))
		}
		expect.NoError(t, os.Rename(filepath.Join(source, "db"), filepath.Join(source, "_"+value)))
		n.WaitFor(t, "the database is deleted", func() bool { return n.Get(t, "/db/key-000042").Code == 404 })
	}
}

// TestDamagedTwice damages the same block twice, without refreshes: it is loaded again both times.
func TestDamagedTwice(t *testing.T) {
	t.Parallel()
	const keys = 2000
	source, c := newNode(t)
	c.Extra = "refresh_period = \"0s\"\nscrub_period = \"200ms\""
	writeVersion(t, source, "db", "1", 1, keys, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	for range 3 {
		path := blockPath(c.Store)
		waitReplaced(t, n, path, damage(t, path))
		waitAnswered(t, n, keys)
	}
}

// TestPipelinedHeaders sends three requests at once. The header of the second is about as long as a buffer. The
// answers come in order. "Connection: Close" counts in upper and lower case.
func TestPipelinedHeaders(t *testing.T) {
	t.Parallel()
	_, n := startWithGood(t)
	for _, length := range []int{16<<10 - 1, 32<<10 - 1, 256<<10 - 2, 256<<10 - 1, 256 << 10} {
		head := "GET /db/key-000002 HTTP/1.1\r\nHost: a\r\nX-A: "
		long := head + strings.Repeat("b", length-len(head)-4) + "\r\n\r\n"
		short := func(i int) string { return fmt.Sprintf("GET /db/key-00000%d HTTP/1.1\r\nHost: a\r\n", i) }
		conn, err := net.Dial("tcp", n.Addr)
		expect.NoError(t, err)
		defer conn.Close()
		expect.NoError(t, conn.SetDeadline(time.Now().Add(process.Deadline)))
		_, err = io.WriteString(conn, short(1)+"\r\n"+long+short(3)+"cOnNeCtIoN: ClOsE\r\n\r\n"+short(4)+"\r\n")
		expect.NoError(t, err)
		var got []string
		for r := bufio.NewReader(conn); ; {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				break // the node has closed the connection
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			expect.NoError(t, err)
			if resp.StatusCode != http.StatusOK {
				body = []byte(resp.Status)
			}
			got = append(got, string(body))
		}
		const refused = "431 Request Header Fields Too Large"
		if s := strings.Join(got, ", "); s != "1/1, 1/2, 1/3" && s != "1/1, "+refused && s != "1/1, "+refused+", 1/3" {
			t.Errorf("a header of %d bytes: %s", length, s)
		}
	}
}

// odd makes versions that cannot be listed or read as others are, whose names begin with prefix.
func odd(t *testing.T, source, prefix string) (names []string) {
	t.Helper()
	for name, spoil := range map[string]func(dir string) error{
		"marker-dir":  func(dir string) error { return os.Mkdir(filepath.Join(dir, "_SUCCESS"), 0o755) },
		"marker-fifo": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "_SUCCESS"), 0o644) },
		"marker-loop": func(dir string) error { return os.Symlink("_SUCCESS", filepath.Join(dir, "_SUCCESS")) },
		"file-loop": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644), os.Symlink("part-r-00001", filepath.Join(dir, "part-r-00001")))
		},
	} {
		name = prefix + "-" + name
		writeVersion(t, source, "db", name, 1, 100, numbered(name))
		dir := filepath.Join(source, "db", name)
		expect.NoError(t, errors.Join(os.Remove(filepath.Join(dir, "_SUCCESS")), spoil(dir)))
		names = append(names, name)
	}
	expect.NoError(t, os.Symlink(prefix+"-loop", filepath.Join(source, "db", prefix+"-loop")))
	return names
}

// TestOddVersionsHarmNobody has odd versions below and above good ones, on a fresh node and after restarts: the greatest
// good one is always served.
func TestOddVersionsHarmNobody(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\nrequire_success_file = \"auto\""
	odd(t, source, "2025")
	above := odd(t, source, "2027")
	for i := range 3 {
		version := fmt.Sprintf("2026-%d", i)
		writeVersion(t, source, "db", version, 1, 100, numbered(version))
		n := process.Serve(t, c, "db", version)
		for _, name := range above {
			n.WaitFor(t, name+" is not served", func() bool {
				v, listed := n.Health(t)["db"][name]
				return !v.Current && (!listed || v.State == "ERROR")
			})
		}
		n.Expect(t, "/db/key-000042", 200, version, version+"/42")
		n.Stop(t)
	}
}

// TestTooManyConnections opens more connections than a node accepts: the node answers 503 on the surplus ones,
// answers probes, serves the earlier connections, and serves new ones after others have closed.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	source, c := newNode(t)
	c.Extra += "\nmax_connections = 4"
	writeVersion(t, source, "db", "1", 1, 100, numbered("1"))
	n := process.Serve(t, c, "db", "1")
	var first []*process.Client
	for range 4 {
		client := n.Client()
		defer client.Close()
		first = append(first, client)
		if r, err := client.Get("/livez"); err != nil || r.Code != 200 { // before the connections of probes are gone
			t.Fatalf("%+v, %v", r, err)
		}
	}
	n.WaitFor(t, "another is refused", func() bool { return n.Get(t, "/db/key-000042").Code == 503 })
	if r := n.Get(t, "/db/key-000042"); r.Header.Get("Retry-After") == "" {
		t.Errorf("refused without Retry-After: %v", r.Header)
	}
	for _, target := range []string{"/livez", "/readyz", "/healthz"} {
		if r := n.Get(t, target); r.Code != 200 {
			t.Errorf("%s: %d", target, r.Code)
		}
	}
	for _, client := range first {
		if r, err := client.Get("/db/key-000042"); err != nil || r.Code != 200 {
			t.Errorf("one of the first: %+v, %v", r, err)
		}
		client.Close()
	}
	n.WaitFor(t, "everybody is served again", func() bool { return n.Get(t, "/db/key-000042").Code == 200 })
}
