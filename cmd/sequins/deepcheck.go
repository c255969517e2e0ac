package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sequins/config"
	"sequins/internal/human"
	"sequins/load"
	"sequins/shard"
	"sequins/source"
	"sequins/zk"
)

// checkTime is how long each check of check-config --deep may take.
const checkTime = 15 * time.Second

// deepFinding is the result of a check: what was found, or what is wrong. What is wrong is, as far as it can be, the error of the thing
// itself.
type deepFinding struct {
	Check string `json:"check"`
	Level string `json:"level"` // levelOK, levelWarning or levelFailed
	Text  string `json:"text"`
}

const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelFailed  = "failed"
)

// deepWarning is the error of a check that does not keep sequins from being used.
type deepWarning struct{ error }

func warned(format string, args ...any) error { return deepWarning{fmt.Errorf(format, args...)} }

// deepCheck is one of the checks of check-config --deep. It returns what it has found, or an error.
type deepCheck struct {
	name string
	run  func(context.Context) (string, error)
}

// deep has the checks of a configuration.
type deep struct{ c *config.Config }

// checks returns the checks that apply to the configuration, in the order in which they are shown.
func (d deep) checks() []deepCheck {
	all := []deepCheck{{"files", d.checkFiles}, {"source", d.checkSource}, {"local_store", d.checkStore}}
	if d.c.Sharding.Enabled {
		all = append(all, deepCheck{"zk", d.checkZooKeeper}, deepCheck{"sharding.advertised_hostname", d.checkAdvertised})
	}
	for _, receiver := range [][2]string{{"events.webhook", d.c.Events.Webhook}, {"tracing.otlp_endpoint", d.c.Tracing.OTLPEndpoint}, {"datadog.url", d.c.Datadog.URL}} {
		if address := receiver[1]; address != "" {
			all = append(all, deepCheck{receiver[0], func(ctx context.Context) (string, error) { return "it can be reached", reach(ctx, address) }})
		}
	}
	return all
}

// runDeep runs checks at the same time, each with its own deadline, and returns what they have found, each in one line, and the number of
// warnings. The error says that some have failed.
func runDeep(ctx context.Context, checks []deepCheck) (results []deepFinding, warnings int, err error) {
	results = make([]deepFinding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			text, err := check.bounded(ctx)
			results[i] = deepFinding{check.name, levelOK, text}
			if err != nil {
				results[i].Level, results[i].Text = levelFailed, err.Error()
			}
			if errors.As(err, new(deepWarning)) {
				results[i].Level = levelWarning
			}
			if errors.Is(err, fs.ErrPermission) { // what the user of this command may do is not always what the service may do
				results[i].Text += "; this runs as " + source.ProcessUser() + ": run it as the user of the service"
			}
			results[i].Text = strings.Join(strings.Fields(results[i].Text), " ")
		})
	}
	all.Wait()
	levels := make(map[string]int)
	for _, f := range results {
		levels[f.Level]++
	}
	if n := levels[levelFailed]; n > 0 {
		err = fmt.Errorf("checks that have failed: %d", n)
	}
	return results, levels[levelWarning], err
}

// bounded runs a check, and gives it up at its deadline: some calls cannot be interrupted, such as those of a network file system that
// hangs.
func (k deepCheck) bounded(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var text string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = k.run(ctx)
	}()
	select {
	case <-done:
		return text, err
	case <-time.After(checkTime + time.Second): // its own error says more
		return "", fmt.Errorf("no answer within %s: what it asks is not reached, or hangs", checkTime)
	}
}

// checkFiles opens the files of tokens, secrets and certificates, all of which must be here.
func (d deep) checkFiles(context.Context) (string, error) {
	c := *d.c // which gets the secrets, while other checks run
	return "those that the configuration names are good", errors.Join(openFiles(&c)...)
}

// checkSource plans a load of the newest version of each database.
func (d deep) checkSource(ctx context.Context) (string, error) {
	c := *d.c // which gets the secrets, while other checks run
	src, err := openSource(ctx, &c)
	if err != nil {
		return "", err
	}
	dbs, err := source.Databases(ctx, src)
	switch {
	case err != nil:
		return "", fmt.Errorf("its databases cannot be listed: %w", err)
	case len(dbs) == 0:
		return "", warned("%s has no databases: is it the right place, and mounted?", c.Source)
	}
	planning, cancel := context.WithTimeout(ctx, checkTime-3*time.Second)
	defer cancel()
	errs := make([]error, len(dbs))
	var group errgroup.Group
	group.SetLimit(maxLookups)
	for i, db := range dbs {
		group.Go(func() error {
			errs[i] = planNewest(planning, src, &c, db)
			return nil
		})
	}
	_ = group.Wait()                   // the errors are in errs
	some := slices.Contains(errs, nil) // the source answers: what has run out of time is not wrong
	wrong := slices.DeleteFunc(errs, func(err error) bool {
		return err == nil || some && planning.Err() != nil && errors.Is(err, context.DeadlineExceeded)
	})
	text := human.Plural(len(dbs), "database")
	switch {
	case len(wrong) > 0:
		const most = 5
		return "", fmt.Errorf("%s; the newest versions of %d cannot be loaded: %w", text, len(wrong), errors.Join(wrong[:min(len(wrong), most)]...))
	case planning.Err() != nil:
		return "", warned("%s; there was not time to look at the newest versions of all", text)
	}
	return text + ", whose newest versions can be loaded", nil
}

// planNewest plans a load of the newest version of a db, without a sample of its keys, and opens a file as the load does. A version that is
// still being written is good.
func planNewest(ctx context.Context, src source.Source, c *config.Config, db string) error {
	versions, err := source.Versions(ctx, src, db)
	if err != nil || len(versions) == 0 {
		return err
	}
	version, o := versions[len(versions)-1], loadOptions(c, db)
	built, err := source.Exists(ctx, src, db, version, source.BlocksFile)
	if err != nil {
		return err
	}
	if !built { // finished blocks are cut by a partitioner, and must agree with the configured one
		o.Partitioner = shard.String.String()
	}
	plan, err := load.New(src, nil, nil, o).Plan(ctx, db, version)
	if errors.Is(err, load.ErrIncomplete) {
		return nil
	}
	if err != nil || len(plan.Files) == 0 || plan.Format == load.FormatBlocks {
		return err
	}
	f := slices.MaxFunc(plan.Files, func(a, b source.File) int { return cmp.Compare(a.Size, b.Size) })
	records, err := load.File{Format: plan.Format, Name: f.Name, Path: src.Path(db, version) + "/" + f.Name, Size: f.Size, Open: func(offset int64) (io.ReadCloser, error) {
		return src.Open(ctx, db, version, f, source.ReadOptions{Offset: offset})
	}}.Records(o.Fields)
	if err != nil {
		return err
	}
	return records.Close()
}

// checkStore writes, links, renames and removes a file in the store, or where it would be created: opening it would create it, with the
// user of this command as its owner. What it makes has a name that the store does not use.
func (d deep) checkStore(context.Context) (string, error) {
	dir := filepath.Clean(d.c.LocalStore)
	_, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		_, err = os.Stat(dir)
	}
	if err = cmp.Or(err, tryDirectory(dir)); err != nil {
		return "", err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if why := unfit(&s); why != "" {
		return "", warned("%s is on %s", dir, why)
	}
	return dir + " can be written", nil
}

// tryDirectory does with a file what the store does with blocks.
func tryDirectory(dir string) (err error) {
	temp, err := os.MkdirTemp(dir, ".sequins-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	file, linked := filepath.Join(temp, "a"), filepath.Join(temp, "b")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		return err
	}
	if err := os.Link(file, linked); err != nil {
		return fmt.Errorf("hard links do not work, with which unchanged partitions are kept: %w", err)
	}
	return os.Rename(linked, filepath.Join(temp, "c"))
}

// probeTime is how long ZooKeeper may take to begin a session.
const probeTime = 5 * time.Second

// checkZooKeeper asks ZooKeeper.
func (d deep) checkZooKeeper(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	o, err := zooKeeperOptions(d.c, nil)
	if err != nil {
		return "", err
	}
	switch report, err := zk.Probe(ctx, o); {
	case err != nil:
		return "", fmt.Errorf("%s: %w", strings.Join(o.Servers, ", "), err)
	case report.Existed:
		return fmt.Sprintf("this node may create znodes below %s; nodes there: %d", o.Root, len(report.Nodes)), nil
	}
	return fmt.Sprintf("this node may create %s; there is no such cluster yet", o.Root), nil
}

// checkAdvertised resolves the advertised name, as other nodes do on their machines.
func (d deep) checkAdvertised(ctx context.Context) (string, error) {
	host, err := advertisedHost(d.c.Sharding.AdvertisedHostname)
	if err != nil {
		return "", err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !a.Unmap().IsLoopback() }) {
		err = warned("%s is %v, the loopback interface: on other machines that is themselves, or their DNS has another address (see /etc/hosts)", host, addrs)
	}
	return fmt.Sprintf("%s is %v", host, addrs), err
}

// reach connects to what is told events, spans or metrics, and sends nothing. address is a URL, whose errors show only the host
// because the rest can hold a password, or that of an agent: of this, the name is resolved, or the socket found.
func reach(ctx context.Context, address string) error {
	network := "udp"
	if path, socket := strings.CutPrefix(address, "unix://"); socket {
		network, address = "unixgram", path
	} else if u, err := url.Parse(address); err == nil && u.Hostname() != "" { // it is valid
		network, address = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80"))
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}
