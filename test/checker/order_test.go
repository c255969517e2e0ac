package checker

import (
	"testing"
	"time"
)

func exactly(version string) func(*Read) {
	return func(r *Read) { r.Exact = version }
}

func atLeast(version string) func(*Read) {
	return func(r *Read) { r.AtLeast = version }
}

// session makes a read one of session s, which may be of either node.
func session(node string) func(*Read) {
	return func(r *Read) { r.Session, r.Node = "s", node }
}

// after makes a read one of a later time.
func after(d time.Duration) func(*Read) {
	return func(r *Read) { r.Start, r.End = r.Start+d, r.End+d }
}

// TestSessions checks sessions, and requests that name a version.
func TestSessions(t *testing.T) {
	behind := read(220, "").with(status(503)).with(atLeast("v3"))
	gone := read(220, "").with(status(412)).with(exactly("v2"))
	for _, h := range []history{
		{"forward from node to node", nil, []Read{read(210, "v2").with(session("n")), read(220, "v2").with(session("m")), read(230, "v3").with(session("n"))}, ""},
		{"back from node to node", nil, []Read{read(210, "v3").with(session("n")), read(220, "v2").with(session("m"))}, "went back"},
		{"back to a 404", nil, []Read{read(210, "v3").with(session("n")),
			read(220, "v1").with(session("m")).with(func(r *Read) { r.Code, r.Key = 404, "c" })}, "went back"},
		{"back to a batch", nil, []Read{read(210, "v3").with(session("n")), batch(220, "v2").with(session("m"))}, "went back"},
		{"back at the same time", nil, []Read{read(210, "v3").with(session("n")), read(210, "v2").with(session("n"))}, "went back"},
		{"back after a refusal", nil, []Read{read(210, "v3").with(session("n")), behind.with(session("m")), read(230, "v2").with(session("m"))}, "went back"},
		{"every read that is behind", nil, []Read{read(210, "v3").with(session("n")), read(220, "v2").with(session("m")), read(230, "v2").with(session("m"))},
			"went back, went back"},
		{"another session", nil, []Read{read(210, "v3").with(session("n")), read(220, "v2").with(session("m")).with(func(r *Read) { r.Session = "t" })}, ""},
		{"of one version in between", nil, []Read{read(210, "v3").with(session("n")), read(220, "v2").with(session("m")).with(exactly("v2"))}, ""},

		{"at least", nil, []Read{read(210, "v2").with(atLeast("v1")), read(220, "v3").with(atLeast("v3"))}, ""},
		{"older than at least", nil, []Read{read(220, "v2").with(atLeast("v3"))}, "wrong answer"},
		{"a 404 older than at least", nil, []Read{read(220, "v1").with(atLeast("v2")).with(func(r *Read) { r.Code, r.Key = 404, "c" })}, "wrong answer"},
		{"a batch older than at least", nil, []Read{batch(220, "v2").with(atLeast("v3"))}, "wrong answer"},
		{"exactly", nil, []Read{read(210, "v2").with(exactly("v2")), read(220, "v1").with(exactly("v1"))}, ""},
		{"newer than exactly", nil, []Read{read(220, "v3").with(exactly("v2"))}, "wrong answer"},
		{"older than exactly", nil, []Read{batch(220, "v2").with(exactly("v3"))}, "wrong answer"},
		{"not yet current, and read exactly", nil, []Read{read(210, "v3").with(exactly("v3")), read(220, "v2")}, "went back"},

		{"behind", nil, []Read{read(210, "v2"), behind, read(230, "v3")}, ""},
		{"behind without a cause", nil, []Read{read(210, "v3"), behind}, "refusal"},
		{"behind what another node has", nil, []Read{read(210, "v3").with(func(r *Read) { r.Node = "m" }), behind}, ""},
		{"behind while it starts", []Event{at(212, Down, "n"), at(214, Start, "n"), at(216, Up, "n")}, []Read{read(210, "v3"), behind, read(240, "v3")}, ""},
		{"behind without a cause while it is stopped", []Event{at(215, Pause, "n"), at(230, Resume, "n")}, []Read{read(210, "v3"), behind}, ""},
		{"503 without a header", nil, []Read{read(210, "v2"), read(220, "").with(status(503))}, "error status"},
		{"503 for exactly", nil, []Read{read(210, "v2"), read(220, "").with(status(503)).with(exactly("v2"))}, "error status"},
		{"behind for a while", []Event{of(300, Calm, "v3"), at(0, Down, "m")}, []Read{behind.with(after(900 * ms)), read(1290, "v3")}, ""},
		{"behind for too long", []Event{of(300, Calm, "v3"), at(0, Down, "m")}, []Read{read(1290, "v3").with(exactly("v3")), behind.with(after(1090 * ms))},
			"nothing asked, refusal, stays behind"},
		{"a cursor that expires long after the last fault", []Event{of(300, Calm, "v2"), at(0, Down, "m")}, []Read{read(400, "v2"), read(1380, "v3"),
			within(1390, "v2", Bounds{After: "a"}).with(status(410)).with(exactly("v2")).with(atLeast("v2"))}, ""},
		{"a cursor that is refused by a node that stays behind", []Event{of(300, Calm, "v2"), at(0, Down, "m")}, []Read{read(400, "v1"),
			within(1390, "v2", Bounds{After: "a"}).with(status(410)).with(exactly("v2")).with(atLeast("v2"))}, "nothing asked, stays behind"},
		{"behind a later version", []Event{of(300, Calm, "v2"), at(0, Down, "m")}, []Read{read(400, "v2"), behind.with(after(1090 * ms))}, ""},

		{"gone", nil, []Read{read(210, "v3"), gone}, ""},
		{"not yet there", nil, []Read{read(210, "v1"), gone, read(230, "v2")}, ""},
		{"replaced meanwhile", nil, []Read{read(210, "v2"), gone, read(230, "v3")}, ""},
		{"gone while it is served", nil, []Read{read(210, "v2"), gone, read(230, "v2")}, "refusal"},
		{"412 without a header", nil, []Read{read(210, "v2"), gone.with(exactly(""))}, "error status"},
		{"410 for a key", nil, []Read{read(210, "v3"), gone.with(func(r *Read) { r.Code = 410 })}, "error status"},
	} {
		h.check(t)
	}
}

// Nodes may go back while somebody has them do so, and only then.
func TestBack(t *testing.T) {
	lost := func(node string) Event { return Event{At: 210 * ms, Kind: Back, Node: node} }
	for _, h := range []history{
		{"back without its disk", []Event{lost("n"), of(290, Ahead, "")}, []Read{read(205, "v3"), read(220, "v2"), read(300, "v3")}, ""},
		{"back once more after that", []Event{lost("n"), of(290, Ahead, "")}, []Read{read(205, "v3"), read(220, "v2"), read(300, "v3"), read(310, "v2")}, "went back"},
		{"back without the disk of another node", []Event{lost("m"), of(290, Ahead, "")}, []Read{read(205, "v3"), read(220, "v2"), read(300, "v3")}, "went back"},
		{"back to a pinned version", []Event{of(210, Back, ""), of(290, Ahead, "")}, []Read{read(205, "v3"), read(220, "v2"), read(300, "v3")}, ""},
		{"back once more", []Event{of(210, Back, ""), of(290, Ahead, "")}, []Read{read(205, "v3"), read(220, "v2"), read(300, "v3"), read(310, "v2")}, "went back"},
		{"back without a pin", []Event{of(210, Back, ""), of(220, Ahead, "")}, []Read{read(230, "v3"), read(240, "v2")}, "went back"},
		{"back of a session", []Event{of(210, Back, ""), of(290, Ahead, "")}, []Read{
			read(205, "v3").with(session("n")), read(220, "v2").with(session("m"))}, ""},
	} {
		h.check(t)
	}
}
