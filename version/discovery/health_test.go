package discovery

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sequins/source"
)

// TestHealthForgetsDatabase: a listing of a database can fail while the database is being removed. Nobody lists it
// again, so its error must go with it, or the source would count as unreachable until the next restart.
func TestHealthForgetsDatabase(t *testing.T) {
	h, errDown := NewHealth(), errors.New("the source is down")
	h.OK("")
	h.Fail("fruit", errDown)
	h.Forget("fruit")
	if since := h.FailingSince(); !since.IsZero() {
		t.Errorf("the source is unreachable since %v, because of a database that is gone: %v", since, h.Report().Err)
	}
	h.Fail("", errDown)
	h.Fail("fruit", errDown)
	h.Forget("fruit")
	if h.FailingSince().IsZero() || !h.RootFailing() {
		t.Error("another error is forgotten, too")
	}
}

// A failure that lasts is news once a minute, and at once when the reason changes.
func TestHealthTellsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, down, refused := NewHealth(), errors.New("down"), errors.New("refused")
		begin := time.Now()
		for i, test := range []struct {
			after time.Duration
			err   error
			news  bool
		}{
			{0, down, true}, {time.Second, down, false}, {50 * time.Second, down, false}, {10 * time.Second, down, true}, {time.Second, down, false},
			{time.Second, refused, true}, {time.Second, refused, false},
		} {
			time.Sleep(test.after)
			if since, news := h.Fail("fruit", test.err); news != test.news || !since.Equal(begin) {
				t.Errorf("%d: news %v, since %v", i, news, since)
			}
		}
		h.OK("fruit")
		if since, news := h.Fail("fruit", refused); !news || since.Equal(begin) {
			t.Errorf("after a success: news %v, since %v", news, since)
		}
	})
}

// What is wrong with a database itself is news once, and is not tried again before the next refresh.
func TestHealthOfALastingFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, table := NewHealth(), fmt.Errorf("fruit: %w: a table", source.ErrLayout)
		for i, want := range []bool{true, false, false} {
			if _, news := h.Fail("fruit", table); news != want {
				t.Errorf("%d: news %v", i, news)
			}
			time.Sleep(time.Hour)
		}
		if !h.IsFailing("fruit") || !h.FailingSince().IsZero() {
			t.Errorf("failing %v, to be tried again since %v", h.IsFailing("fruit"), h.FailingSince())
		}
	})
}
