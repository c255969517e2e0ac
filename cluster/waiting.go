package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"sequins/observe/status"
	"sequins/zk"
)

const (
	// waitingPeriod is the time after which Join logs what it waits for. It is doubled with each line, up to maxWaitingPeriod.
	waitingPeriod    = 5 * time.Second
	maxWaitingPeriod = time.Minute
	// pollPeriod is the polling interval of Join.
	pollPeriod = 50 * time.Millisecond
)

// joining is the state of Join.
type joining struct {
	c     *Cluster
	nodes *zk.Children
	began time.Time
	// quiet is how long the members have to stay the same.
	quiet time.Duration
	// startAway is called once, when ZooKeeper is not there awayAfter the beginning.
	startAway func(members []string) error
}

// goAway makes this node answer without ZooKeeper if it has waited too long for it.
func (j *joining) goAway() error {
	start := j.startAway
	if start == nil || j.nodes.Current() || time.Since(j.began) < j.c.awayAfter {
		return nil
	}
	j.startAway = nil
	j.c.recall()
	if j.c.o.AskRemembered {
		return start(j.c.recalled.Load().Members)
	}
	return start(nil)
}

// expectsOthers reports whether the members are not those of the cluster yet: this node was away, remembers others, and none has reached ZooKeeper.
func (j *joining) expectsOthers(ms *membership) bool {
	return j.c.away.Load() && len(j.c.recalled.Load().Members) > 0 && j.c.o.MinNodes == 0 &&
		!slices.ContainsFunc(ms.all, func(m Member) bool { return m.Addr != j.c.o.Addr })
}

// until waits until blocked returns "" and, from now on, the members have not changed for a while: without ZooKeeper, no change is seen. It logs what
// it waits for at growing intervals: what lasts longer than the members have to stay the same is a warning, as is ZooKeeper.
func (j *joining) until(ctx context.Context, while time.Duration, blocked func() string) error {
	period, since := waitingPeriod, time.Now()
	log := time.NewTimer(period)
	defer log.Stop()
	look := time.NewTicker(pollPeriod)
	defer look.Stop()
	for {
		if err := j.goAway(); err != nil {
			return err
		}
		reason, ms, s := blocked(), j.c.members.Load(), j.c.o.Session.Status()
		if s.State != zk.Connected || !j.nodes.Current() {
			since = time.Now()
		}
		if reason == "" && min(time.Since(since), time.Since(ms.since), time.Since(s.Since)) < while {
			reason = fmt.Sprintf("the nodes to stay the same for %s", while)
		}
		if reason == "" {
			return nil
		}
		if s.State != zk.Connected { // the members are not known to change without it
			reason = zooKeeper(s)
		}
		now := status.Wait{For: status.WaitForNodes, What: reason, Since: j.began.UTC().Truncate(time.Second)}
		if strings.HasPrefix(reason, "ZooKeeper") {
			now.For = status.WaitForZooKeeper
		}
		j.c.joining.Store(&now)
		select {
		case <-look.C:
		case <-log.C:
			level, since := slog.LevelInfo, time.Since(j.began)
			if now.For == status.WaitForZooKeeper || since > j.quiet+2*waitingPeriod {
				level = slog.LevelWarn
			}
			text := "joining the cluster; no requests for keys are answered before"
			if j.startAway == nil {
				text = "joining the cluster; what was served before the restart is served until then, and nothing is loaded"
			}
			j.c.log.Log(ctx, level, text, "waiting_for", now.What, "since", since.Round(time.Second))
			period = min(2*period, maxWaitingPeriod)
			log.Reset(period)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", reason, ctx.Err())
		}
	}
}

// zooKeeper names ZooKeeper as what a node waits for, with the last error of its session.
func zooKeeper(s zk.Status) string {
	if s.LastError == "" {
		return "ZooKeeper"
	}
	return "ZooKeeper (" + s.LastError + ")"
}
