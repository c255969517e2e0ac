package server

import (
	"testing"
)

func TestGet(t *testing.T) {
	s := start(t, catalogOf(t, map[string]string{"a": "one", "b": "two"}), Options{})
	for k, v := range map[string]string{"a": "one", "b": "two"} {
		got := s.get(t, "/db/"+k)
		if got.status != 200 || got.body != v {
			t.Errorf("GET %s: %d %q", k, got.status, got.body)
		}
		t.Log(got)
	}
	t.Log(s.get(t, "/db/zzz"))
	t.Log(s.get(t, "/x/zzz"))
	t.Log(s.get(t, "/"))
}
