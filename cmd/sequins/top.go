package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	cmd := &cobra.Command{
		Use:   "top [DB...]",
		Short: "Watch the status, the traffic and the events of a running sequins",
		Long: `Show on the whole terminal, and keep up to date, what sequins status shows, with the
requests per second for each database, the part of them that found no key, the
times within which a half and 99 % were answered, and the last events. Of a cluster,
traffic is that of all nodes, and the times are those of the slowest. With DB, only
these databases are shown.

` + nodeHelp + `

While the node does not answer, the last status stays, with its age. ^C ends it. For
a pipe or a log, use sequins status.`,
		Example: `  sequins top
  sequins top --server node1.example.com:9599`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.ask(cmd, args, func(c *client.Node) error { return watch(cmd, c, args) })
		},
	}
	node.register(cmd)
	return cmd
}

// topPeriod is the time between two requests for the status.
const topPeriod = 2 * time.Second

// watch draws the status periodically, until a signal. It only writes: the modes of the terminal stay as they are.
func watch(cmd *cobra.Command, c *client.Node, dbs []string) error {
	out, ok := cmd.OutOrStdout().(*os.File)
	if !ok || !term.Is(out) || os.Getenv("TERM") == "dumb" {
		return errors.New("top needs a terminal: use sequins status")
	}
	return untilSignal(cmd.Context(), slog.New(slog.DiscardHandler), endPatience, nil, func(ctx context.Context) error {
		v := topView{url: c.URL()}
		begin := clearScreen
		for {
			st, err := c.Status(ctx)
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
			v.failed = err
			_, height, _ := xterm.GetSize(int(out.Fd()))
			lines := v.frame(cmp.Or(height, 24)-1, time.Now()) // the last line stays free for the cursor
			if _, err := io.WriteString(out, begin+term.NoWrap+strings.Join(append(lines, clearBelow+term.Wrap), clearRight+"\n")); err != nil {
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
)

type topView struct {
	url    string
	st     *status.Status // the last one
	at     time.Time      // of st
	failed error          // why there is no newer one; nil if st is the newest
}

// frame returns the lines of the screen, at most height of them: the head of the status, the traffic, of databases as many as half the screen has, and
// the tables of the status and the last events below.
func (v *topView) frame(height int, now time.Time) []string {
	head := headOf(v.st, v.url, now) + v.totals() + "\n"
	if v.failed != nil {
		head = "what follows is " + human.Duration(now.Sub(v.at)) + " old: " + term.Clean(v.failed.Error()) + "\n" + head
	}
	traffic := strings.SplitAfter(v.traffic(), "\n")
	most := min(len(traffic), max(2, height/2))
	all := head + "\n" + strings.Join(traffic[:most], "") + "\n" + dbTable(v.st, now) + nodeTable(v.st) + v.events()
	lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	return lines[:min(len(lines), height)]
}

// totals returns the line with the traffic of the node, or of the cluster.
func (v *topView) totals() string {
	t, text := v.st.Traffic, ""
	for _, p := range v.st.Peers {
		t.Add(p.Traffic)
	}
	if n := len(v.st.Peers); n > 0 {
		text = human.Plural(n+1, "node") + ": "
	}
	return text + fmt.Sprintf("%s requests a second, %s missed, %s errors, p50 %s, p99 %s",
		human.Rate(t.Requests), percent(t.MissShare()), human.Rate(t.Errors), latency(t.P50), latency(t.P99))
}

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

// latency formats seconds, and 0 as a dash.
func latency(seconds float64) string {
	return dashIf(seconds <= 0, human.Latency(time.Duration(seconds*1e9)))
}

// traffic returns the table of the traffic of databases, those with the most requests first.
func (v *topView) traffic() string {
	names := slices.Sorted(maps.Keys(v.st.DBs))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(v.st.DBs[b].Asked().Requests, v.st.DBs[a].Asked().Requests) })
	t := term.NewTable("DATABASE", "VERSION", "REQ/S", "MISS", "P50", "P99")
	for _, name := range names {
		db := v.st.DBs[name]
		asked := db.Asked()
		t.Row(term.Clean(name), term.Clean(db.Current(v.st.Node)), human.Rate(asked.Requests), percent(asked.MissShare()), latency(asked.P50), latency(asked.P99))
	}
	return t.String()
}

// events returns a line for each of the last events.
func (v *topView) events() string {
	if len(v.st.Events) == 0 {
		return ""
	}
	lines := []string{"", "EVENTS"}
	for i := range v.st.Events {
		e := &v.st.Events[i]
		kind := strings.ReplaceAll(term.Clean(string(e.Kind)), "_", " ")
		text := e.Time.UTC().Format("01-02 15:04:05") + " " + kind + " " + term.Clean(e.DB+" "+e.Version)
		if e.Reason != "" {
			of := v.st.DBs[e.DB].Versions[e.Version]
			text += ": " + term.Clean(of.Brief(e.Reason, e.Version))
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}
