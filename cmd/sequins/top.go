package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"sequins/client"
	"sequins/internal/human"
	"sequins/internal/sleep"
	"sequins/internal/term"
	"sequins/observe/status"
)

func topCommand() *cobra.Command {
	var node nodeFlags
	var by string
	cmd := &cobra.Command{
		Use:   "top [ADDR] [DB...]",
		Short: "Watch the traffic, the loads, the nodes and the events of a running sequins",
		Long: `Show the status of a running sequins on the whole terminal, and keep it up to date:
for each database the requests per second, the part of them that found no key, the
times within which a half and 99 % were answered, and what is special; loads with
their progress and what they wait for; the nodes; and the last events. Of a cluster,
traffic is that of all nodes, and the times are those of the slowest. With DB, only
these databases are shown.

` + nodeHelp + `

While the node does not answer, the last status stays, with its age. ^C ends it. For
a pipe or a log, use sequins status.`,
		Example: `  sequins top
  sequins top node1.example.com:9599 --sort latency`,
		Args:              node.args(0, -1),
		ValidArgsFunction: node.complete(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topOrders[by] == nil {
				return usageError(fmt.Errorf("--sort %q is none of %s", by, strings.Join(slices.Sorted(maps.Keys(topOrders)), ", ")))
			}
			return node.ask(cmd, args, func(c *client.Node, dbs []string) error { return watch(cmd, c, dbs, by) })
		},
	}
	node.register(cmd)
	cmd.Flags().StringVar(&by, "sort", "requests", "`order` of the databases: requests, misses, latency or name")
	return cmd
}

// topOrders are the figures by which databases are sorted, the greatest first; those with the same by name.
var topOrders = map[string]func(status.Traffic) float64{
	"requests": func(t status.Traffic) float64 { return t.Requests },
	"misses":   status.Traffic.MissShare,
	"latency":  func(t status.Traffic) float64 { return t.P99 },
	"name":     func(status.Traffic) float64 { return 0 },
}

// topPeriod is the time between two requests for the status.
const topPeriod = 2 * time.Second

// watch draws the status periodically, until a signal. It only writes: the modes of the terminal stay as they are.
func watch(cmd *cobra.Command, c *client.Node, dbs []string, by string) error {
	out, ok := cmd.OutOrStdout().(*os.File)
	if !ok || !term.Is(out) || os.Getenv("TERM") == "dumb" {
		return errors.New("top needs a terminal: use sequins status")
	}
	return untilSignal(cmd.Context(), discard(), endPatience, nil, func(ctx context.Context) error {
		v := topView{url: c.URL(), by: by}
		begin := clearScreen
		for {
			st, _, err := c.Status(ctx)
			if err == nil {
				err = chooseDBs(&st, c.URL(), dbs)
			}
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // a signal has ended it
			case err == nil:
				v.st, v.at = &st, time.Now()
			case v.st == nil:
				return err
			}
			v.failed, v.console = err, term.NewConsole(out)
			_, height, _ := xterm.GetSize(int(out.Fd()))
			lines := v.frame(cmp.Or(height, 24)-1, time.Now()) // the last line stays free for the cursor
			if _, err := io.WriteString(out, begin+noWrap+strings.Join(append(lines, clearBelow+wrap), clearRight+"\n")); err != nil {
				return err
			}
			begin = home
			_ = sleep.For(ctx, topPeriod) // at its end, the next request fails
		}
	})
}

// Sequences of terminals.
const (
	home        = "\x1b[H"
	clearScreen = home + "\x1b[2J"
	clearRight  = "\x1b[K"
	clearBelow  = "\x1b[J"
	noWrap      = "\x1b[?7l" // lines that are too long are cut off
	wrap        = "\x1b[?7h"
)

// topView is what is shown.
type topView struct {
	url, by string
	console term.Console
	st      *status.Status // the last one
	at      time.Time      // of st
	failed  error          // why there is no newer one; nil if st is the newest
}

// frame returns the lines of the screen, at most height of them. Loads, nodes and events have a share each. Databases have the lines that these leave,
// and events what the databases leave.
func (v *topView) frame(height int, now time.Time) []string {
	lines, share := v.header(now), max(2, height/6)
	var rest []string
	for _, part := range [][]string{v.loads(now), v.nodes()} {
		rest = append(rest, part[:min(len(part), share)]...)
	}
	dbs, events := v.databases(), v.events()
	lines = append(lines, dbs[:min(len(dbs), max(2, height-len(lines)-len(rest)-min(len(events), share)))]...)
	lines = append(append(lines, rest...), events...)
	return lines[:min(len(lines), height)]
}

// header returns the lines about the node as a whole.
func (v *topView) header(now time.Time) []string {
	line := v.console.Paint(levelColors[v.st.Level], term.Clean(v.st.Health))
	if v.failed != nil {
		line = v.console.Paint(term.Red, "what follows is "+human.Duration(now.Sub(v.at))+" old: "+term.Clean(v.failed.Error()))
	}
	lines := []string{headLine(v.st, v.url, now) + ", " + now.UTC().Format(time.TimeOnly) + " UTC", line, v.totals()}
	if findings := v.st.Details(); len(findings) > 0 { // there is room for one
		lines = append(lines, v.console.Paint(term.Yellow, term.Clean(findings[0].Line(v.at))))
	}
	return append(lines, "")
}

// totals returns the line with the traffic and the disk of the node, or of the cluster.
func (v *topView) totals() string {
	t, text := v.st.Traffic, ""
	for _, p := range v.st.Peers {
		t.Add(p.Traffic)
	}
	if n := len(v.st.Peers); n > 0 {
		text = human.Plural(n+1, "node") + ": "
	}
	text += fmt.Sprintf("%s requests a second, %s missed, %s errors, p50 %s, p99 %s",
		human.Rate(t.Requests), percent(t.MissShare()), human.Rate(t.Errors), latency(t.P50), latency(t.P99))
	if d := v.st.Disk; d.Bytes > 0 {
		text += fmt.Sprintf("; %s of disk free", human.Size(d.Free))
	}
	return text
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

// latency formats seconds, and 0 as a dash.
func latency(seconds float64) string {
	return dashIf(seconds <= 0, human.Latency(time.Duration(seconds*1e9)))
}

// table returns the lines of a table that add fills, with an empty line below.
func (v *topView) table(headings []string, add func(*term.Table)) []string {
	var b bytes.Buffer
	t := term.NewTable(v.console.To(&b), headings...)
	add(t)
	_ = t.Flush() // a buffer takes everything
	return strings.Split(b.String(), "\n")
}

// databases returns the table of databases.
func (v *topView) databases() []string {
	names, figure := slices.Sorted(maps.Keys(v.st.DBs)), topOrders[v.by]
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(figure(v.st.DBs[b].Asked()), figure(v.st.DBs[a].Asked())) })
	return v.table([]string{"DATABASE", "VERSION", "REQ/S", "MISS", "P50", "P99", ""}, func(t *term.Table) {
		for _, name := range names {
			db := v.st.DBs[name]
			asked := db.Asked()
			note, color := v.note(db)
			t.Row(term.Clean(name), term.Clean(db.Current(v.st.Node)), human.Rate(asked.Requests), percent(asked.MissShare()),
				latency(asked.P50), latency(asked.P99), term.Clean(note)).Color(6, color)
		}
	})
}

// note describes what is special about a database beside its loads: its error, that of the served version, its pin.
func (v *topView) note(db status.DB) (string, term.Color) {
	served := db.Current(v.st.Node)
	of := db.Versions[served]
	switch failed := of.Nodes[v.st.Node].Error; {
	case db.Error != "":
		return db.Error, term.Red
	case failed != "":
		return of.Brief(failed, served), term.Red
	case db.Pin != nil:
		return db.Pin.String(), term.Yellow
	}
	return "", term.Plain
}

// loads returns lines for the versions that nodes load, hold, wait with or have failed to load, those with progress first.
func (v *topView) loads(now time.Time) []string {
	running, others := []string{v.console.Paint(term.Bold, "LOADS")}, []string(nil)
	for _, db := range slices.Sorted(maps.Keys(v.st.DBs)) {
		for _, version := range slices.Backward(slices.Sorted(maps.Keys(v.st.DBs[db].Versions))) {
			of := v.st.DBs[db].Versions[version]
			for _, node := range slices.Sorted(maps.Keys(of.Nodes)) {
				on := of.Nodes[node]
				if !slices.Contains([]status.State{status.Building, status.Available, status.Held, status.Error}, on.State) {
					continue
				}
				text := term.Clean(db + " " + version)
				if len(v.st.Peers) > 0 {
					text += " on " + term.Clean(node)
				}
				text += " " + v.console.Paint(stateColors[on.State], string(on.State))
				reason := term.Clean(cmp.Or(of.Brief(on.Error, version), on.Detail))
				if reason != "" {
					reason = ": " + reason
				}
				if p := on.Progress; p != nil && p.Bytes > 0 {
					running = append(running, text+" "+progress(p, now)+reason)
				} else {
					others = append(others, text+reason)
				}
			}
		}
	}
	if len(running)+len(others) == 1 {
		return nil
	}
	return append(append(running, others...), "")
}

// progress returns the bar of a load with its figures.
func progress(p *status.Progress, now time.Time) string {
	text := term.Bar(p.BytesDone, p.Bytes)
	if p.BytesPerSecond > 0 {
		text += ", " + human.Size(int64(p.BytesPerSecond)) + " a second"
	}
	if left := p.ETA.Sub(now); left > 0 {
		text += ", about " + human.Duration(left) + " left"
	}
	return text
}

// nodes returns the table of the nodes of a cluster.
func (v *topView) nodes() []string {
	if len(v.st.Peers) == 0 {
		return nil
	}
	return v.table([]string{"NODE", "REQ/S", "P99", "DISK FREE", ""}, func(t *term.Table) {
		for _, p := range v.st.Members() {
			note, color := nodeNote(p)
			t.Row(term.Clean(p.Addr), human.Rate(p.Traffic.Requests), latency(p.Traffic.P99), free(p.Disk), note).Color(4, color)
		}
	})
}

// events returns lines for the last events.
func (v *topView) events() []string {
	if len(v.st.Events) == 0 {
		return nil
	}
	lines := []string{v.console.Paint(term.Bold, "EVENTS")}
	for i := range v.st.Events {
		e := &v.st.Events[i]
		kind := v.console.Paint(levelColors[e.Level()], strings.ReplaceAll(term.Clean(string(e.Kind)), "_", " "))
		text := e.Time.UTC().Format("01-02 15:04:05") + " " + kind + " " + term.Clean(e.DB+" "+e.Version)
		if e.Reason != "" {
			of := v.st.DBs[e.DB].Versions[e.Version]
			text += ": " + term.Clean(of.Brief(e.Reason, e.Version))
		}
		lines = append(lines, text)
	}
	return lines
}
