package node

import "testing"

// TestHealthForgetsDatabase: a listing of a database can fail while the database is being removed. Nobody lists it
// again, so its error must go with it, or the source would count as unreachable until the next restart.
func TestHealthForgetsDatabase(t *testing.T) {
	var h health
	h.init()
	h.ok("")
	h.fail("fruit", errDown)
	h.forget("fruit")
	if since := h.failingSince(); !since.IsZero() {
		t.Errorf("the source is unreachable since %v, because of a database that is gone: %v", since, h.report().err)
	}
	h.fail("", errDown)
	h.fail("fruit", errDown)
	h.forget("fruit")
	if h.failingSince().IsZero() || !h.rootFailing() {
		t.Error("another error is forgotten, too")
	}
}
