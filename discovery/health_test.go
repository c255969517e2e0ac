package discovery

import (
	"errors"
	"testing"
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
