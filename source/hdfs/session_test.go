package hdfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"

	"sequins/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const standby = "org.apache.hadoop.ipc.StandbyException"

// inTime runs a test in a bubble with its own clock, which fails unless every
// goroutine ends, and gives it the cluster.
func inTime(t *testing.T, nodes map[string]func(net.Conn), run func(t *testing.T, c *cluster, s *Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: nodes}
		run(t, c, c.source(t))
	})
}

func wantDatabases(t *testing.T, s *Source, want ...string) {
	t.Helper()
	got, err := source.Databases(t.Context(), s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("databases: %v\n%s", err, diff)
	}
}

func wantError(t *testing.T, err error, class error, parts ...string) {
	t.Helper()
	if err == nil || class != nil && !errors.Is(err, class) {
		t.Errorf("%v, want an error that is %v", err, class)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

// took fails unless so much time has passed since start.
func took(t *testing.T, start time.Time, least, most time.Duration) {
	t.Helper()
	if d := time.Since(start); d < least || d > most {
		t.Errorf("it took %v, want %v to %v", d, least, most)
	}
}

func TestSilentNamenodes(t *testing.T) {
	inTime(t, map[string]func(net.Conn){"a:1": silent, "b:2": silent}, func(t *testing.T, c *cluster, s *Source) {
		start := time.Now()
		_, err := source.Databases(t.Context(), s)
		wantError(t, err, os.ErrDeadlineExceeded, "list hdfs://a:1/data", "gave up after ", " attempts")
		took(t, start, retryFor-maxPause-timeout, retryFor+2*timeout)
	})
}

func TestCancelledWhileSilent(t *testing.T) {
	inTime(t, map[string]func(net.Conn){"a:1": silent}, func(t *testing.T, c *cluster, s *Source) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(timeout/2, cancel)
		start := time.Now()
		_, err := source.Versions(ctx, s, "db")
		wantError(t, err, context.Canceled, "list hdfs://a:1/data/db")
		took(t, start, timeout/2, timeout/2)
		if order := s.addresses(); order[0] != "a:1" {
			t.Errorf("it was not the namenode that ended it, yet the order is %v", order)
		}
		ctx, cancel = context.WithTimeout(t.Context(), timeout/2)
		defer cancel()
		_, err = s.Open(ctx, "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
		wantError(t, err, context.DeadlineExceeded, "open hdfs://a:1/data/db/1/part-00000")
		took(t, start, timeout, timeout)
	})
}

// A call that hangs does not affect other calls.
func TestOneHangs(t *testing.T) {
	inTime(t, map[string]func(net.Conn){"a:1": silent}, func(t *testing.T, c *cluster, s *Source) {
		s.namenodes = []string{"a:1"}
		ctx, cancel := context.WithCancel(t.Context())
		hung := make(chan error)
		go func() {
			_, err := source.Databases(ctx, s)
			hung <- err
		}()
		synctest.Wait()
		c.set("a:1", tree(stat(typeDir, "db")))
		start := time.Now()
		wantDatabases(t, s, "db")
		took(t, start, 0, 0)
		cancel()
		wantError(t, <-hung, context.Canceled)
		took(t, start, 0, 0)
	})
}

func TestSilentThenAnother(t *testing.T) {
	inTime(t, map[string]func(net.Conn){"a:1": silent, "b:2": tree(stat(typeDir, "db"))}, func(t *testing.T, c *cluster, s *Source) {
		start := time.Now()
		wantDatabases(t, s, "db")
		took(t, start, timeout, timeout+time.Second)
		c.dialled()
		start = time.Now()
		wantDatabases(t, s, "db")
		took(t, start, 0, 0)
		if diff := cmp.Diff([]string{"b:2"}, c.dialled()); diff != "" {
			t.Errorf("dialled the second time: %s", diff)
		}
	})
}

func TestStandby(t *testing.T) {
	inTime(t, map[string]func(net.Conn){"a:1": throws(standby, "not me"), "b:2": tree(stat(typeDir, "db"))}, func(t *testing.T, c *cluster, s *Source) {
		wantDatabases(t, s, "db")
		wantDatabases(t, s, "db")
		if diff := cmp.Diff([]string{"a:1", "b:2", "b:2"}, c.dialled()); diff != "" {
			t.Errorf("dialled: %s", diff)
		}
	})
}

// Failover takes a while without an active namenode; then it fails back.
func TestFailover(t *testing.T) {
	nobody := map[string]func(net.Conn){"a:1": throws(standby, "not me"), "b:2": throws(standby, "nor me")}
	inTime(t, nobody, func(t *testing.T, c *cluster, s *Source) {
		time.AfterFunc(4*time.Second, func() { c.set("b:2", tree(stat(typeDir, "db"))) })
		start := time.Now()
		wantDatabases(t, s, "db")
		took(t, start, 4*time.Second, 10*time.Second)
		c.set("b:2", nil)
		c.set("a:1", tree(stat(typeDir, "db")))
		start = time.Now()
		wantDatabases(t, s, "db")
		took(t, start, 0, time.Second)
		c.set("a:1", nil)
		start = time.Now()
		_, err := source.Databases(t.Context(), s)
		wantError(t, err, nil, "no available namenodes", "connection refused", "attempts")
		took(t, start, retryFor-maxPause, retryFor)
	})
}

// A namenode that takes its time, but answers, is waited for.
func TestSlowNamenode(t *testing.T) {
	slow := answers(func(method string) answer {
		if method == "getFileInfo" {
			return answer{message: text(nil, 1, stat(typeDir, "")), after: timeout - time.Millisecond}
		}
		return answer{message: text(nil, 1, number(nil, 2, 0))}
	})
	inTime(t, map[string]func(net.Conn){"a:1": slow}, func(t *testing.T, c *cluster, s *Source) {
		wantDatabases(t, s)
		if n := len(c.dialled()); n != 1 {
			t.Errorf("dialled %d times", n)
		}
	})
}

func TestWhatNamenodesSay(t *testing.T) {
	const security = "org.apache.hadoop.security."
	tests := []struct {
		name  string
		serve func(net.Conn)
		class error
		says  []string
		final bool // there is no point in asking again
	}{
		{"no permission", throws(security+"AccessControlException", "Permission denied: user=me\n\tat org.apache"), fs.ErrPermission, []string{"(Permission denied: user=me)"}, true},
		{"not authorised", throws(security+"authorize.AuthorizationException", "User me is not"), fs.ErrPermission, []string{"User me is not"}, true},
		{"not found", throws("java.io.FileNotFoundException", "File does not exist"), fs.ErrNotExist, nil, true},
		{"below a file", throws(security+"AccessControlException", "/data (is not a directory)"), fs.ErrNotExist, nil, true},
		{"null", always(answer{}), fs.ErrNotExist, nil, true},
		{"a link", throws("org.apache.hadoop.hdfs.protocol.UnresolvedPathException", "x"), errSymlink, nil, true},
		{"safe mode", throws("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Name node is in safe mode."), nil, []string{"SafeModeException: Name node is in safe mode."}, false},
		{"too busy", throws("org.apache.hadoop.ipc.RetriableException", "Server is too busy."), nil, []string{"too busy"}, false},
		{"refused in an answer to nothing", always(answer{callID: 1<<32 - 1, exception: security + "AccessControlException",
			text: "SIMPLE authentication is not enabled."}), fs.ErrPermission, []string{"SIMPLE authentication"}, true},
		{"a web server", says("HTTP/1.1 400 Bad Request\r\n\r\n"), nil, []string{"not a namenode's RPC port", `"HTTP"`}, false},
		{"half a frame", says("\x00\x00\x01\x00abc"), nil, []string{"EOF"}, false},
		{"nonsense", says("\x00\x00\x00\x05abcde"), nil, []string{"invalid response"}, false},
		{"nothing", says(""), nil, []string{"EOF"}, false},
		{"an empty frame", says("\x00\x00\x00\x00"), nil, []string{"sequence number"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, map[string]func(net.Conn){"a:1": tt.serve}, func(t *testing.T, c *cluster, s *Source) {
				s.namenodes = []string{"a:1"}
				_, err := source.Databases(t.Context(), s)
				wantError(t, err, tt.class, append(tt.says, "list hdfs://a:1/data: ")...)
				if n := len(c.dialled()); tt.final != (n == 1) {
					t.Errorf("%d attempts, final %v", n, tt.final)
				}
			})
		})
	}
}

func TestListing(t *testing.T) {
	nodes := map[string]func(net.Conn){"a:1": tree(stat(typeDir, "b"), stat(typeDir, "a b"), stat(isFile, "file"), stat(typeDir, "_x"),
		stat(typeDir, "a"), stat(typeSymlink, "link"))}
	inTime(t, nodes, func(t *testing.T, c *cluster, s *Source) {
		wantDatabases(t, s, "a", "b")
		in, err := source.ListNames(t.Context(), s, "")
		if diff := cmp.Diff([]string{"a b"}, in.Invalid); err != nil || diff != "" {
			t.Errorf("invalid: %v\n%s", err, diff)
		}
		_, err = s.Contents(t.Context(), "b", "1")
		wantError(t, err, errSymlink, "hdfs://a:1/data/b/1: link: symbolic links are not supported")
	})
}

func TestUnreadable(t *testing.T) {
	encryption := number(number(nil, 1, 2), 2, 2)
	for field := range protowire.Number(4) {
		encryption = text(encryption, 3+field, "x")
	}
	for what, status := range map[string][]byte{
		"erasure-coded":      text(stat(isFile, ""), 17, number(nil, 4, 1)),
		"encryption zone":    text(stat(isFile, ""), 15, encryption),
		"not a regular file": stat(typeDir, ""),
	} {
		inTime(t, map[string]func(net.Conn){"a:1": always(answer{message: text(nil, 1, status)})}, func(t *testing.T, c *cluster, s *Source) {
			_, err := s.Open(t.Context(), "db", "1", source.File{Name: "part-00000"}, source.ReadOptions{})
			wantError(t, err, nil, "open hdfs://a:1/data/db/1/part-00000: ", what)
		})
	}
}
