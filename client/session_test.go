package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sequins/client"
	"sequins/test/expect"
)

// A session passes over nodes that are behind, and waits if all are.
func TestSession(t *testing.T) {
	old, current := startFake(t, "v1", map[string]string{"k": "one"}), startFake(t, "v2", map[string]string{"k": "two"})
	c := newClient(t, client.Options{}, old, current)
	s := c.Session()
	expect.Eventually(t, "the session has seen v2", func() bool {
		v, err := s.Get(t.Context(), "db", []byte("k"))
		expect.NoError(t, err)
		return v.Version == "v2"
	})
	for range 20 {
		v, err := s.Get(t.Context(), "db", []byte("k"))
		if err != nil || string(v.Data) != "two" {
			t.Errorf("after v2: %q of %s, %v", v.Data, v.Version, err)
		}
		b, err := s.MultiGet(t.Context(), "db", [][]byte{[]byte("k"), []byte("x")})
		if err != nil || string(b.Values[0]) != "two" || b.Version != "v2" {
			t.Errorf("a batch after v2: %q of %s, %v", b.Values, b.Version, err)
		}
		if v, err = s.Get(t.Context(), "db", []byte("absent")); v.Version != "v2" {
			t.Errorf("an absent key: %+v, %v", v, err)
		}
	}
	resumed, err := c.ResumeSession(s.String())
	expect.NoError(t, err)
	current.upgrade("v1", map[string]string{"k": "one"}) // as if it had been replaced by another
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = resumed.Get(ctx, "db", []byte("k"))
	expect.Error(t, "only v1 is served", err, client.ErrBehind)
	done := make(chan client.Value)
	go func() {
		v, _ := resumed.Get(context.Background(), "db", []byte("k"))
		done <- v
	}()
	old.upgrade("v3", map[string]string{"k": "three"})
	if v := <-done; string(v.Data) != "three" || resumed.String() != "db=v3" {
		t.Errorf("%q of %q; session %s", v.Data, v.Version, resumed)
	}
	if v, err := c.Session().Get(t.Context(), "db", []byte("k")); err != nil || v.Version == "v2" {
		t.Errorf("another session: %+v, %v", v, err)
	}
}

func TestExportedSessions(t *testing.T) {
	c := newClient(t, client.Options{}, startFake(t, "v1", nil))
	for exported, want := range map[string]string{
		"": "", "db=v1": "db=v1", "a=1&b=2": "a=1&b=2", "b=2&a=1&b=10": "a=1&b=2", "b=2&b=3": "b=3",
		"a%3D1=run%402026-01-31T10%3A00%3A00%2B01%3A00%2Cx": "a%3D1=run%402026-01-31T10%3A00%3A00%2B01%3A00%2Cx", "a=1+2": "error",
		"db=": "error", "db": "error", "=v1": "error", "db=a/b": "error", "db=%0d%0aX": "error", "a;b=c": "error", strings.Repeat("a=1&", 20000): "error",
	} {
		s, err := c.ResumeSession(exported)
		if err != nil {
			expect.Error(t, exported[:min(50, len(exported))], err, client.ErrInvalid)
			if want != "error" {
				t.Errorf("%q: %v", exported, err)
			}
		} else if s.String() != want {
			t.Errorf("%.50q is %q, want %q", exported, s, want)
		}
	}
}
