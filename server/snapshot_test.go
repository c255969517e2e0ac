package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sequins/observe/status"
)

// countingCatalog counts how often its status is taken.
type countingCatalog struct {
	catalog
	taken atomic.Int64
}

func (c *countingCatalog) Status() status.Status {
	c.taken.Add(1)
	return c.catalog.Status()
}

// However many clients ask for the pages of a node, a status is taken at most once
// a second, and it is at most a second old.
func TestStatusIsTakenOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countingCatalog{catalog: catalog{state: busyStatus()}}
		s := newServer(c, testOptions{})
		targets := []string{"/", "/names", "/unknown", "/healthz"}
		ask := func() {
			var all sync.WaitGroup
			for i := range 200 {
				for _, target := range targets {
					all.Go(func() {
						r := httptest.NewRequest("GET", target, nil)
						if i%2 == 1 {
							r.Header.Set("Accept", "text/html")
						}
						w := httptest.NewRecorder()
						s.handle(w, r)
						if want := target != "/unknown"; (w.Code == http.StatusOK) != want || w.Body.Len() == 0 {
							t.Errorf("%s: %d %q", target, w.Code, w.Body)
						}
					})
				}
			}
			all.Wait()
		}
		for second := range int64(3) {
			ask()
			time.Sleep(statusAge - time.Nanosecond)
			ask()
			if n := c.taken.Load(); n != second+1 {
				t.Errorf("after %d requests in second %d the status was taken %d times", 1600, second, n)
			}
			time.Sleep(time.Nanosecond)
		}
		if n := len(s.ownStatus.answers); n != 5 {
			t.Errorf("%d answers are kept", n)
		}
	})
}

// A status page that was rendered for one client is shown only to clients that may
// see pages, and a stranger's answer to nobody else.
func TestRenderedPagesKeepRights(t *testing.T) {
	c := catalogOf(t, nil)
	c.state = busyStatus()
	tokens, _ := openTokens(t, tokensFile)
	s := start(t, c, testOptions{Tokens: tokens})
	for range 2 {
		for _, target := range []string{"/", "/names", "/healthz"} {
			for _, accept := range []string{"Accept: application/json", "Accept: text/html"} {
				stranger := s.get(t, target, accept)
				reader := s.get(t, target, accept, webToken)
				operator := s.get(t, target, accept, opsToken)
				for who, got := range map[string]answer{"a stranger": stranger, "a reader": reader} {
					if strings.Contains(got.body, "2026-01-30") {
						t.Errorf("%s, %s: %s sees %.200s", target, accept, who, got.body)
					}
				}
				if operator.status != 200 || !strings.Contains(operator.body, "2026-01-30") {
					t.Errorf("%s, %s: an operator sees %d %.200s", target, accept, operator.status, operator.body)
				}
			}
		}
	}
}
