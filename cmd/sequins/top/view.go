// Package top is the live view of the status of a node on a terminal: the databases with their traffic, the loads, the
// nodes and the last events.
//
// A View holds the last status, and what is selected and sorted; Frame draws it as lines for a size, without a terminal.
// Run connects it with one: it asks the node periodically, passes on keys, and writes the lines that have changed. Only the
// loop of Run uses the View.
package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sequins/internal/term"
	"sequins/observe/status"
)

// View is what is shown.
type View struct {
	name    string // of the node that is asked
	console term.Console

	st     *status.Status // the last one; nil before the first
	at     time.Time      // of st
	failed error          // why there is no newer one; nil if st is the newest

	order    order
	reversed bool
	filter   string
	typing   bool // the filter is being typed
	selected string
	first    int // the first database that is shown
	shown    int // databases that fit
}

// order is what databases are sorted by.
type order int

const (
	byName order = iota
	byRequests
	byMisses
	byLatency
	orders
)

// New returns a view of a node. Of the console, only the colors matter.
func New(name string, c term.Console) *View { return &View{name: name, console: c} }

// Update takes a status, or why there is none.
func (v *View) Update(st *status.Status, err error, now time.Time) {
	if v.failed = err; err == nil {
		v.st, v.at = st, now
	}
}

// Key takes a key, and reports whether it ends the view.
func (v *View) Key(k Key) (quit bool) {
	if v.typing {
		v.typeFilter(k)
		return k == CtrlC
	}
	switch k {
	case 'q', CtrlC:
		return true
	case 'j', Down:
		v.move(1)
	case 'k', Up:
		v.move(-1)
	case PageDown, ' ':
		v.move(max(1, v.shown-1))
	case PageUp:
		v.move(-max(1, v.shown-1))
	case 'g', Home:
		v.move(-len(v.databases()))
	case 'G', End:
		v.move(len(v.databases()))
	case 's':
		v.order, v.reversed = (v.order+1)%orders, false
	case 'r':
		v.reversed = !v.reversed
	case '/':
		v.typing = true
	case Escape:
		v.filter = ""
	}
	return false
}

// maxFilter limits the filter, in characters.
const maxFilter = 100

// typeFilter takes a key of the filter.
func (v *View) typeFilter(k Key) {
	switch {
	case k == Enter:
		v.typing = false
	case k == Escape || k == CtrlC:
		v.typing, v.filter = false, ""
	case k == CtrlU:
		v.filter = ""
	case k == Backspace && v.filter != "":
		runes := []rune(v.filter)
		v.filter = string(runes[:len(runes)-1])
	case k >= ' ' && k != Backspace && len(v.filter) < maxFilter:
		v.filter += string(rune(k))
	}
}

// row is a database.
type row struct {
	name    string
	db      status.DB
	traffic status.Traffic // of the cluster, if there is one
}

// databases returns the databases in their order.
func (v *View) databases() (rows []row) {
	if v.st == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.st.DBs)) {
		if !strings.Contains(name, v.filter) {
			continue
		}
		db := v.st.DBs[name]
		rows = append(rows, row{name, db, db.Asked()})
	}
	slices.SortStableFunc(rows, v.compare)
	if v.reversed {
		slices.Reverse(rows)
	}
	return rows
}

// compare orders two databases; the greatest numbers are first.
func (v *View) compare(a, b row) int {
	switch v.order {
	case byRequests:
		return cmp.Compare(b.traffic.Requests, a.traffic.Requests)
	case byMisses:
		return cmp.Compare(b.traffic.MissShare(), a.traffic.MissShare())
	case byLatency:
		return cmp.Compare(b.traffic.P99, a.traffic.P99)
	}
	return cmp.Compare(a.name, b.name)
}

// move moves the selection by n databases.
func (v *View) move(n int) {
	rows := v.databases()
	if len(rows) == 0 {
		return
	}
	i := v.indexOf(rows) + n
	v.selected = rows[min(max(i, 0), len(rows)-1)].name
}

// indexOf returns the index of the selected database, or of the first if that is gone.
func (v *View) indexOf(rows []row) int {
	return max(0, slices.IndexFunc(rows, func(r row) bool { return r.name == v.selected }))
}
