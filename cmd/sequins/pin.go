package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/names"
	"sequins/internal/nearest"
	"sequins/source"
	"sequins/version/discovery"
	"sequins/version/pin"
)

type pinFlags struct {
	source  serveFlags
	node    nodeFlags
	wait    bool
	timeout time.Duration
	reason  string
	until   string
	force   bool
}

func pinCommand() *cobra.Command {
	var f pinFlags
	cmd := f.command("pin DB VERSION", func(p *pinning, args []string) error { return p.pin(args[1]) })
	cmd.Short = "Serve one version of a database and no other"
	cmd.Long = `Pin a database to a version: write version into <source>/<db>/_PIN. Every node
reads the file within seconds, serves this version, also if it is older, and loads no other.

--until ends the pin at a time (2026-02-02T12:00:00Z) or after a duration (36h).
A version that is excluded or not in the source is refused, unless --force is
given; --force also takes it off exclude.` + pinHelp
	cmd.Example = `  sequins pin words 2026-01-30 --reason "half of the input was missing"
  sequins pin words 2026-01-30 --until 36h --wait --server node1:9599`
	cmd.Flags().StringVar(&f.until, "until", "", "`time` or duration after which the pin has no effect")
	return cmd
}

func unpinCommand() *cobra.Command {
	var f pinFlags
	cmd := f.command("unpin DB", func(p *pinning, _ []string) error { return p.unpin() })
	cmd.Short = "Serve the newest version of a database again"
	cmd.Long = `End the pin of a database: remove version and until from <source>/<db>/_PIN. What
is excluded stays excluded.` + pinHelp
	cmd.Example = `  sequins unpin words --source /srv/sequins
  sequins unpin words --wait --server node1:9599`
	return cmd
}

func rollbackCommand() *cobra.Command {
	var f pinFlags
	cmd := f.command("rollback DB VERSION", func(p *pinning, args []string) error { return p.rollback(args[1]) })
	cmd.Short = "Exclude a bad version of a database"
	cmd.Long = `Exclude a version of a database: add it to exclude in <source>/<db>/_PIN. Every
node reads the file within seconds, and switches to the newest other version. The
next version that is loaded goes live by itself.

A database that is pinned is refused: pin another version instead. So are a version
that is not in the source, and one before which there is no complete version, unless
--force is given.` + pinHelp
	cmd.Example = `  sequins rollback words 2026-01-31 --reason "half of the input was missing"
  sequins rollback words 2026-01-31 --server node1:9599 --wait`
	return cmd
}

func approveCommand() *cobra.Command {
	var f pinFlags
	cmd := f.command("approve DB VERSION", func(p *pinning, args []string) error { return p.approve(args[1]) })
	cmd.Short = "Serve a version although the gate holds it"
	cmd.Long = `Approve a version that breaks the rules of the gate: add it to approve in
<source>/<db>/_PIN. Every node reads the file within seconds, and switches to the
version.

A version that is excluded or not in the source is refused, unless --force is
given; --force also takes it off exclude.` + pinHelp
	cmd.Example = `  sequins approve words 2026-01-31 --reason "we have left the market"
  sequins approve words 2026-01-31 --wait --server node1:9599`
	return cmd
}

const pinHelp = `

The other keys of the file stay as they are; comments are lost. The source is
--source, or source of sequins.conf or /etc/sequins.conf, which also has the
settings of remote sources. Its path and the new content are printed. If somebody
else writes the file meanwhile, nothing is written. The command ends with what
sequins refresh does.

` + nodeHelp + `

Exits with 1 if the file was not written, or if --wait ends without success; 3 if
the database or the version is not in the source; 5 if the source or the node
does not answer; 6 if the source refuses.`

// command returns a command that changes the file by edit. Its arguments are a database and maybe a version.
func (f *pinFlags) command(use string, edit func(*pinning, []string) error) *cobra.Command {
	n := strings.Count(use, " ")
	cmd := &cobra.Command{Use: use, Args: cobra.ExactArgs(n)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !names.ValidDatabase(args[0]):
			return usageError(fmt.Errorf("%q cannot be the name of a database", args[0]))
		case n > 1 && !names.Valid(args[1]):
			return usageError(fmt.Errorf("%q cannot be the name of a version", args[1]))
		}
		f.node.config = f.source.config
		return f.source.withSource(cmd.Context(), func(c *config.Config, src source.Source) error {
			p := &pinning{pinFlags: f, ctx: cmd.Context(), config: c, src: src, db: args[0], now: time.Now(), out: cmd.OutOrStdout()}
			change := func() error { return p.change(func() error { return edit(p, args) }) }
			if !f.wait && f.node.server == "" {
				return change()
			}
			node, err := f.node.client()
			if err != nil {
				return err
			}
			defer node.Close()
			if err := p.checkSource(node); err != nil {
				return err
			}
			if err := change(); err != nil || !f.wait {
				return err
			}
			return p.await(node, cmd.ErrOrStderr())
		})
	}
	f.source.registerSource(cmd)
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until all nodes of the cluster follow")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long --wait waits")
	f.node.registerNode(cmd)
	if n > 1 {
		cmd.Flags().StringVar(&f.reason, "reason", "", "`text` about this version, for the people who read the file and the status")
		cmd.Flags().BoolVar(&f.force, "force", false, "write it although a check fails")
	}
	return cmd
}

// pinning is one change of the file of a database.
type pinning struct {
	*pinFlags
	ctx    context.Context
	out    io.Writer
	config *config.Config
	src    source.Source
	db     string

	now     time.Time
	file    pin.File
	decided string // the version that is pinned, excluded or approved; "" for unpin
	// approved is the version that was approved, which nodes then serve, or a newer one; "" for other changes.
	approved string
}

// change reads the file, edits it and writes it.
func (p *pinning) change(edit func() error) error {
	path := p.src.Path(p.db, pin.FileName)
	var data []byte
	err := rewrite(p.ctx, p.src, p.db, pin.FileName, func(old []byte) (_ []byte, err error) {
		if p.file, err = pin.Parse(old); err != nil {
			return nil, fmt.Errorf("%s: %w: correct or remove the file", path, err)
		}
		if err := edit(); err != nil {
			return nil, err
		}
		p.file.By = whoAmI()
		p.file.Explain(p.decided, p.reason)
		if data, err = p.file.Encode(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return data, nil
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.out, "%s:\n%s", path, data); err != nil {
		return err
	}
	if err := refresh(p.ctx, p.src, p.now); err != nil {
		_, err = fmt.Fprintf(p.out, "The nodes follow it at their next look at the source: %v\n", err)
		return err
	}
	return nil
}

// rewrite replaces a small file of the source, of at most pin.MaxSize bytes, by what edit makes of its content. Errors of the source say
// what to do.
func rewrite(ctx context.Context, src source.Source, db, name string, edit func(old []byte) ([]byte, error)) error {
	old, err := source.ReadSmall(ctx, src, db, name, pin.MaxSize)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		data, refused := edit(old)
		if refused != nil {
			return refused
		}
		err = source.WriteSmall(ctx, src, db, name, data, old)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, source.ErrChanged):
		return fmt.Errorf("%w: nothing was written; look at the file and try again", err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: run this where the source can be written", err)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: run this as a user who may write there", err)
	}
	return ofSource(src, err)
}

// whoAmI returns user@host of this process, or of who ran it by sudo.
func whoAmI() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return cmp.Or(name, "unknown") + "@" + host
}

func (p *pinning) pin(version string) error {
	until, err := parseUntil(p.until, p.now)
	if err != nil {
		return err
	}
	if err := p.admit(version); err != nil {
		return err
	}
	p.decided, p.file.Version, p.file.Until = version, version, until
	return nil
}

// parseUntil parses a time or a duration from now. An empty text is the zero time.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if d, derr := time.ParseDuration(text); derr == nil {
		t, err = now.Add(d).UTC().Truncate(time.Second), nil
	}
	if err != nil {
		return t, usageError(fmt.Errorf("--until %q is neither a time like 2026-02-02T12:00:00Z nor a duration like 36h", text))
	}
	if !t.After(now) {
		return t, usageError(fmt.Errorf("--until %s is not in the future", text))
	}
	return t, nil
}

func (p *pinning) approve(version string) error {
	if v := p.file.Pinned(p.now); v != "" && v != version {
		return fmt.Errorf("%s is pinned to version %s: unpin it first, or pin it to %s, which needs no approval", p.db, v, version)
	}
	if err := p.admit(version); err != nil {
		return err
	}
	if !slices.Contains(p.file.Approve, version) {
		p.file.Approve = append(p.file.Approve, version)
	}
	p.decided, p.approved = version, version
	return nil
}

func (p *pinning) unpin() error {
	p.file.Version, p.file.Until = "", time.Time{}
	return nil
}

// revoke takes a version, and the reason for it, from the excluded or the approved ones.
func (p *pinning) revoke(list *[]string, version string) {
	if i := slices.Index(*list, version); i >= 0 {
		*list = slices.Delete(*list, i, i+1)
		delete(p.file.Reasons, version)
	}
}

// admit refuses to serve a version that is excluded or not in the source. With --force, it is taken off the excluded ones.
func (p *pinning) admit(version string) error {
	if p.force {
		p.revoke(&p.file.Exclude, version)
		return nil
	}
	if slices.Contains(p.file.Exclude, version) {
		return fmt.Errorf("version %s of %s is excluded: --force takes it off exclude", version, p.db)
	}
	_, err := p.versions(version)
	return err
}

// versions returns the versions in the source. That the given one is not among them is an error without --force.
func (p *pinning) versions(version string) ([]string, error) {
	all, err := source.Versions(p.ctx, p.src, p.db)
	if err == nil && !p.force && !slices.Contains(all, version) {
		return nil, withCode(exitAbsent, fmt.Errorf("%s is not in the source: sequins versions lists what is; --force writes it nevertheless%s",
			p.src.Path(p.db, version), nearest.DidYouMean(nearest.Of(version, all))))
	}
	return all, ofSource(p.src, withNearest(p.ctx, p.src, p.db, err))
}

func (p *pinning) rollback(bad string) error {
	if v := p.file.Pinned(p.now); v != "" {
		return fmt.Errorf("%s is pinned to version %s: pin another version instead, or unpin it first", p.db, v)
	}
	all, err := p.versions(bad)
	if err != nil {
		return err
	}
	older := slices.DeleteFunc(all, func(v string) bool { return v >= bad || slices.Contains(p.file.Exclude, v) })
	l := lister{src: p.src, config: p.config}
	found, _, err := l.lookAll(p.ctx, p.db, older) // one that cannot be read is not complete, and no reason to keep a bad one
	if err != nil {
		return err
	}
	if !p.force && !slices.ContainsFunc(found, func(v versionListing) bool { return v.Complete }) {
		return fmt.Errorf("there is no complete version of %s before %s in the source; --force excludes it nevertheless", p.db, bad)
	}
	if !slices.Contains(p.file.Exclude, bad) {
		p.file.Exclude = append(p.file.Exclude, bad)
	}
	p.decided = bad
	p.revoke(&p.file.Approve, bad)
	if p.file.Version == bad { // without effect, since its time is over
		return p.unpin()
	}
	return nil
}

func refreshCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "refresh", Args: cobra.NoArgs,
		Short: "Make all nodes look at the source",
		Long: `Make every node look at the source within seconds: find new versions, and follow
_PIN. It writes the time and your name into <source>/_REFRESH, which the nodes
read every three seconds.

The source is --source, or source of sequins.conf or /etc/sequins.conf, which
also has the settings of remote sources.

Exits with 1 if the file was not written, 5 if the source does not answer, and 6
if it refuses.`,
		Example: `  sequins refresh --source /srv/sequins`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withSource(cmd.Context(), func(_ *config.Config, src source.Source) error {
				return refresh(cmd.Context(), src, time.Now())
			})
		},
	}
	f.registerSource(cmd)
	return cmd
}

// refresh changes the content of RefreshFile. If somebody else does at the same time, that is enough.
func refresh(ctx context.Context, src source.Source, now time.Time) error {
	err := rewrite(ctx, src, "", discovery.RefreshFile, func([]byte) ([]byte, error) {
		return []byte(now.UTC().Format(time.RFC3339Nano) + " " + whoAmI() + "\n"), nil
	})
	if errors.Is(err, source.ErrChanged) {
		return nil
	}
	return err
}
