package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sequins/source"
)

// failing returns a Health, and a function that lets fruit fail, and returns whether that was logged, and since when it is failing.
func failing() (h *Health, fail func(error) (news bool, since time.Time)) {
	var log bytes.Buffer
	h = NewHealth(slog.New(slog.NewTextHandler(&log, nil)))
	return h, func(err error) (bool, time.Time) {
		log.Reset()
		h.Fail("fruit", err)
		return log.Len() > 0, h.Report().DBs["fruit"].Since
	}
}

// TestHealthForgetsDatabase: a listing of a database can fail while the database is being removed. Nobody lists it
// again, so its error must go with it, or the source would count as unreachable until the next restart.
func TestHealthForgetsDatabase(t *testing.T) {
	h, _ := failing()
	errDown := errors.New("the source is down")
	h.Read("", nil)
	h.Fail("fruit", errDown)
	h.Forget("fruit")
	if since := h.FailingSince(); !since.IsZero() {
		t.Errorf("the source is unreachable since %v, because of a database that is gone: %v", since, h.Report().Err)
	}
	h.Fail("", errDown)
	h.Fail("fruit", errDown)
	h.Forget("fruit")
	if h.FailingSince().IsZero() || !h.IsFailing("") {
		t.Error("another error is forgotten, too")
	}
}

// A failure is news once, and again when the reason changes.
func TestHealthTellsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, fail := failing()
		down, refused := errors.New("down"), errors.New("refused")
		begin := time.Now()
		for i, test := range []struct {
			after time.Duration
			err   error
			news  bool
		}{
			{0, down, true}, {time.Second, down, false}, {50 * time.Second, down, false}, {time.Hour, down, false},
			{time.Second, refused, true}, {time.Second, refused, false},
		} {
			time.Sleep(test.after)
			news, since := fail(test.err)
			if news != test.news || !since.Equal(begin) {
				t.Errorf("%d: news %v, since %v", i, news, since)
			}
		}
		h.Read("fruit", nil)
		if news, since := fail(refused); !news || since.Equal(begin) {
			t.Errorf("after a success: news %v, since %v", news, since)
		}
	})
}

// What is wrong with a database itself is news once, and is not tried again before the next refresh.
func TestHealthOfALastingFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, fail := failing()
		table := fmt.Errorf("fruit: %w: a table", source.ErrLayout)
		for i, want := range []bool{true, false, false} {
			if news, _ := fail(table); news != want {
				t.Errorf("%d: news %v", i, news)
			}
			time.Sleep(time.Hour)
		}
		if !h.IsFailing("fruit") || !h.FailingSince().IsZero() {
			t.Errorf("failing %v, to be tried again since %v", h.IsFailing("fruit"), h.FailingSince())
		}
	})
}
