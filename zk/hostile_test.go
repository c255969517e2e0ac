//go:build integration

package zk

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"sequins/test/zktest"
)

// A server that is none, whatever it answers, is asked at a bounded rate, and the session can be closed.
func TestHostileServers(t *testing.T) {
	type answers = func(op int32, body []byte) zktest.Answer
	code := func(n int32) answers {
		return func(int32, []byte) zktest.Answer { return zktest.Answer{Code: n} }
	}
	// only answers one operation differently from a server that agrees to everything.
	only := func(differs int32, a zktest.Answer) answers {
		return func(op int32, body []byte) zktest.Answer {
			if op == differs {
				return a
			}
			return zktest.Agree(op, body)
		}
	}
	for name, answer := range map[string]answers{
		"agrees to everything":        zktest.Agree,
		"empty replies":               code(0),
		"no znode":                    code(-101),
		"no rights":                   code(-102),
		"session expired":             code(-112),
		"connection lost":             code(-4),
		"no replies":                  func(int32, []byte) zktest.Answer { return zktest.Answer{None: true} },
		"many children":               only(zktest.Children, zktest.Answer{Body: append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 68)...)}),
		"short transaction":           only(zktest.Multi, zktest.Answer{Body: make([]byte, 4)}),
		"exists without children":     only(zktest.Children, zktest.Answer{Code: -101}),
		"transactions never succeed":  only(zktest.Multi, zktest.Answer{Code: -110}),
		"transactions lack a parent":  only(zktest.Multi, zktest.Answer{Code: -101}),
		"znodes change all the time":  only(zktest.Multi, zktest.Answer{Code: -103}),
		"znodes whose data is hidden": only(zktest.GetData, zktest.Answer{Code: -102}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const paths, window = 300, 3 * time.Second
			const atOnce, perSecond = 2000, 200
			server := zktest.Serve(t, "127.0.0.1:0", answer)
			start := time.Now()
			s := session(t, Options{
				Servers: []string{server.Addr}, ConnectTimeout: time.Second, SessionTimeout: 4 * time.Second, Root: "/r/s",
				Auth: "a:b", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
			for p := range paths {
				s.Publish(PartitionPath("db", "1", p, "host:1"), nil)
			}
			s.Watch(NodesDir, func([]Entry) {})
			s.Watch(VersionDir("db", "1"), func([]Entry) {})
			s.Prune(PartitionsDir + "/db")
			<-time.After(window) // the rate is measured over that time
			seconds := time.Since(start).Seconds()
			if n := server.Requests.Load(); float64(n) > 2*(atOnce+perSecond*seconds) {
				t.Errorf("%d requests in %.1f s", n, seconds)
			}
			if n := server.Connections.Load(); float64(n) > 2+seconds {
				t.Errorf("%d connections in %.1f s", n, seconds)
			}
			closeInTime(t, s)
		})
	}
}
