package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sequins/observe/status"

	"github.com/google/go-cmp/cmp"
)

// The status of a node while it serves, when a version is bad, and when the node has ended.
func TestStatusOfANode(t *testing.T) {
	dir := t.TempDir()
	source := demoSource(t, dir)
	s := startServer(t, dir, "-r", "source", "-l", "store")
	address := strings.TrimPrefix(s.base, "http://")
	s.awaitVersion(demoPath, demoFirst)

	for _, addr := range []string{address, s.base, s.base + "/"} {
		r := sequins(t, "status", "--server", addr)
		r.wants(t, exitOK)
		for _, want := range []string{s.base + ", sequins ", "Serving 1 database.\n", "DATABASE", demoDB, demoFirst + " *", "ACTIVE", "active for", "DISK FREE", "localhost  -"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("sequins status %s does not say %q:\n%s", addr, want, r.stdout)
			}
		}
	}

	writeFile(t, filepath.Join(source, demoDB, "9999", "part-00000"), "no data file")
	writeFile(t, filepath.Join(source, demoDB, "9999", "_SUCCESS"), "")
	s.signal(syscall.SIGHUP)
	s.await("/", "an error", func(_ *http.Response, body string) bool { return strings.Contains(body, "ERROR") })
	r := sequins(t, "status", "--server", address)
	r.wants(t, exitUnhealthy)
	for _, want := range []string{"Serving 1 database; 1 with a version that could not be loaded.\n", "9999", `it begins with "no d"`} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("sequins status does not say %q:\n%s", want, r.stdout)
		}
	}

	s.signal(syscall.SIGTERM)
	s.wait()
	sequins(t, "status", "--server", address).wants(t, exitUnreachable, "sequins: http://"+address+" refuses the connection: ")
}

// Without an address, it is the one that the configuration of this machine has.
func TestStatusFindsItsNode(t *testing.T) {
	for _, test := range []struct{ conf, want string }{
		{"source = \"/none\"\nbind = \":1\"\n", "sequins: http://127.0.0.1:1 refuses the connection: "},
		{"source = \"/none\"\nbind = \"0.0.0.0:1\"\n", "sequins: http://127.0.0.1:1 refuses the connection: "},
		{"source = \"/none\"\nbind = \"[::1]:1\"\n", "sequins: http://[::1]:1 refuses the connection: "},
		{"bind = 1\n", "sequins: finding the node of this machine: "},
	} {
		cmd := command(t, "status")
		writeFile(t, filepath.Join(cmd.Dir, "sequins.conf"), test.conf)
		r := finish(t, cmd)
		if r.code != exitUnreachable && test.conf != "bind = 1\n" || r.code == exitOK || !strings.HasPrefix(r.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s", test.conf, r.code, r.stderr)
		}
	}
	for _, addr := range []string{"host", "host:", "a:b:c", "ftp://x", "host:x", "host:65536"} {
		sequins(t, "scan", "--server", addr, "words").wants(t, exitUsage, "sequins: ")
	}
}

// Something answers, and it is not sequins.
func TestStatusOfSomethingElse(t *testing.T) {
	for body, want := range map[string]string{
		"<html>":       "does not answer as sequins does",
		"{}":           "does not answer as sequins does",
		`{"dbs":{}}`:   "",
		"not found":    "answers with 404",
		`{"dbs":[{}]}`: "does not answer as sequins does",
	} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body == "not found" {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, body)
		}))
		r := sequins(t, "status", "--server", other.URL)
		other.Close()
		code := exitFailure
		if want == "" {
			code = exitUnhealthy
		}
		if r.code != code || !strings.Contains(r.stderr, want) || want == "" && r.stderr != "" {
			t.Errorf("%s: exit code %d, %q", body, r.code, r.stderr)
		}
	}
}

func TestStatusTable(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	st := status.Status{
		Node: "n1:9599", Build: "v2.0.0", StartedAt: now.Add(-3 * time.Hour), Health: "Serving 1 of 3 databases.",
		Problems: []string{"n2:9599 has replication 3, this node 2"}, SourceError: "no such host\x1b[31m", Warnings: []string{`the directory "healthz" cannot be a db`},
		DBs: map[string]status.DB{
			"empty": {Error: "there are no versions in the source"},
			"words": {Hints: []string{"2 of 3 nodes hold nothing"}, Versions: map[string]status.Version{
				"1": {NumPartitions: 2, MissingPartitions: 1, UnderreplicatedPartitions: 1, Nodes: map[string]status.OnNode{"n1:9599": {
					State: "ACTIVE", Current: true, Partitions: []int{0}, ActiveAt: now.Add(-50 * time.Hour),
					LastModified: now.Add(-51 * time.Hour), Records: 1234567, Bytes: 150 << 20}}},
				"2": {NumPartitions: 2, Nodes: map[string]status.OnNode{"n1:9599": {State: "ERROR", Error: `part-0: key \x00` + "\nbad\x1b[2J"}}},
				"3": {Nodes: map[string]status.OnNode{"n2:9599": {State: "ACTIVE", Current: true}}},
			}},
		},
	}
	st.ZooKeeper = &status.ZooKeeper{Error: "connection refused"}
	st.ShardID, st.Disk = "1", status.Disk{Bytes: 100 << 30, Free: 25<<30 + 1, Blocks: 150 << 20}
	st.Peers = map[string]status.Peer{
		"n3:9599": {ShardID: "3", Zone: "b\x1b[1m", Disk: status.Disk{Bytes: 100 << 30, Free: 0, Blocks: 90 << 30, Low: true}},
		"n2:9599": {ShardID: "2", Error: "connection\nrefused"},
	}
	loading := status.OnNode{State: "BUILDING", Detail: "loading"}
	loading.Progress = &status.Progress{Bytes: 200, BytesDone: 90, ETA: now.Add(2 * time.Minute)}
	st.DBs["birds"] = status.DB{Versions: map[string]status.Version{"7": {NumPartitions: 8, Nodes: map[string]status.OnNode{"n1:9599": loading}}}}
	want := `http://n1:9599, sequins v2.0.0, up for 3 h 0 min
Serving 1 of 3 databases.
n2:9599 has replication 3, this node 2
ZooKeeper cannot be reached: connection refused
The source cannot be read: no such host\x1b[31m
the directory "healthz" cannot be a db
2 of 3 nodes hold nothing
DATABASE  VERSION  STATE     PARTITIONS  RECORDS    SIZE       DATA FROM
birds     7        BUILDING  0 of 8      -          -          -                 45%, about 2 min left, loading
empty     -        -         -           -          -          -                 there are no versions in the source
words     3                  0 of 0      -          -          -
          2        ERROR     0 of 2      -          -          -                 part-0: key \x00\nbad\x1b[2J
          1 *      ACTIVE    1 of 2      1,234,567  150.0 MiB  2026-01-29 09:00  active for 2 days, partitions on no node: 1, partitions on too few nodes: 1

NODE     SHARD  ZONE      BLOCKS     DISK FREE       OF
n1:9599  1      -         150.0 MiB  25.0 GiB (25%)  100.0 GiB
n2:9599  2      -         -          -               -          did not answer: connection\nrefused
n3:9599  3      b\x1b[1m  90.0 GiB   0 B (0%)        100.0 GiB  the disk is nearly full
`
	if diff := cmp.Diff(want, statusText(&st, "http://n1:9599", now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nothing is a dash.
func TestInWords(t *testing.T) {
	for n, want := range map[int64]string{0: "-", 1: "1", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := number(n); got != want {
			t.Errorf("number(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "-", 1023: "1023 B", 5 << 20: "5.0 MiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}
