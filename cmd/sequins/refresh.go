package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"sequins/internal/term"
	"sequins/source"
	"sequins/version/discovery"
)

func refreshCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "refresh", Args: cobra.NoArgs,
		Short: "Make all nodes look at the source",
		Long: `Make every node look at the source within seconds, as SIGHUP does on one node:
find new versions, follow _PIN, and retry what has failed. It writes the time and
your name into <source>/_REFRESH, which the nodes read every three seconds.

The source is --source, or source of sequins.conf or /etc/sequins.conf, which
also has the settings of remote sources.

Exits with 1 if the file was not written, 5 if the source does not answer, and 6
if it refuses.`,
		Example: `  sequins refresh --source /srv/sequins`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, _, err := f.load()
			if err != nil {
				return err
			}
			src, err := openSource(cmd.Context(), &c)
			if err != nil {
				return err
			}
			if s, ok := src.(io.Closer); ok {
				defer func() { err = errors.Join(err, s.Close()) }()
			}
			p := term.NewCount(cmd.ErrOrStderr(), "writing to "+c.Source, "file", 0)
			defer p.Stop()
			return refresh(cmd.Context(), src, time.Now())
		},
	}
	f.registerSource(cmd)
	return cmd
}

// refresh changes the content of RefreshFile. If somebody else does at the same time, that is enough.
func refresh(ctx context.Context, src source.Source, now time.Time) error {
	w, ok := src.(source.Writer)
	if !ok {
		return fmt.Errorf("%s: this kind of source cannot be written", src.Path("", discovery.RefreshFile))
	}
	old, err := source.ReadSmall(ctx, src, "", discovery.RefreshFile, maxRefreshFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explainPin(src, err)
	}
	text := now.UTC().Format(time.RFC3339Nano) + " " + whoAmI() + "\n"
	err = w.WriteSmall(ctx, "", discovery.RefreshFile, []byte(text), old)
	if errors.Is(err, source.ErrChanged) {
		return nil
	}
	return explainPin(src, err)
}

// maxRefreshFile limits the file that is replaced, in bytes.
const maxRefreshFile = 4 << 10
