package server

import (
	"errors"
	"log/slog"
	"testing"

	"sequins/proxy"
	"sequins/version"
)

// planned is a catalogue with a version that was loaded by a plan.
func planned(t *testing.T, plan string) *catalog {
	t.Helper()
	info := version.Info{DB: "db", Name: "v1", Partitions: 1, LastModified: modified, Plan: plan, Following: version.Solo{}}
	set := version.NewSet("db")
	activate(t, set, versionWith(t, info, map[string]string{"k": "value"}))
	return &catalog{sets: map[string]*version.Set{"db": set}}
}

// A node that has loaded a version by one plan does not answer a peer that has it
// by another.
func TestPeerOfAnotherPlan(t *testing.T) {
	for _, test := range []struct {
		ours, header string
		status       int
	}{
		{"a", "X-Sequins-Plan: a", 200},
		{"a", "X-Sequins-Plan: b", 501},
		{"a", "x-sequins-plan: b", 501},
		{"a", "X-Sequins-Other: b", 200}, // an older release
		{"a", "X-Sequins-Plan:", 200},
		{"", "X-Sequins-Plan: b", 200},
	} {
		s := start(t, planned(t, test.ours), testOptions{})
		for _, general := range []string{"X: y", "Range: bytes=0-"} { // answered by net/http's rules
			got := s.get(t, "/db/k?proxy=v1", test.header, general)
			if got.status == 206 {
				got.status = 200
			}
			if got.status != test.status {
				t.Errorf("%+v, %s: %+v", test, general, got)
			}
		}
		if got := s.get(t, "/db/k", test.header); got.status != 200 || got.body != "value" {
			t.Errorf("%+v: a client gets %+v", test, got)
		}
	}
}

// Requests to peers name the plan of the node.
func TestPlanIsAskedFor(t *testing.T) {
	for _, test := range []struct {
		theirs string
		status int
	}{{"mine", 200}, {"another", 502}, {"", 200}} {
		holder := start(t, planned(t, test.theirs), testOptions{})
		set := version.NewSet("db")
		activate(t, set, version.New(version.Info{DB: "db", Name: "v1", Partitions: 1, Plan: "mine", Following: peersOnly{peers: []string{holder.addr}}}))
		p := proxy.New(proxy.Options{Timeout: patience, Logger: slog.New(slog.DiscardHandler)})
		s := start(t, &catalog{sets: map[string]*version.Set{"db": set}}, testOptions{Proxy: p})
		t.Cleanup(p.Close)
		for _, general := range []string{"X: y", "If-Match: *", "X-Sequins-Plan: " + test.theirs} {
			if got := s.get(t, "/db/k", general); got.status != test.status {
				t.Errorf("%+v, %s: %+v", test, general, got)
			}
		}
	}
}

// A node that does not know its plan asks as older releases do.
func TestNoPlanIsAskedFor(t *testing.T) {
	s := start(t, away(t), testOptions{Proxy: proxyFunc(func(q *proxy.Query) (*proxy.Answer, error) {
		for _, f := range q.Fields {
			if f.Name == keyPlan {
				t.Errorf("asked for plan %q", f.Value)
			}
		}
		return nil, errors.New("no")
	})})
	if got := s.get(t, "/db/k"); got.status != 502 {
		t.Errorf("%+v", got)
	}
}
