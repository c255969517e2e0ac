package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/load/loadproc"
	"sequins/node/daemon"
	"sequins/source"
)

// loadWorkerCommand is the command of a load process, which only a node starts.
func loadWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    loadproc.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			code := loadproc.Main(func(ctx context.Context, spec json.RawMessage) (source.Source, error) {
				var c config.Config
				if err := json.Unmarshal(spec, &c); err != nil {
					return nil, err
				}
				return daemon.OpenSource(ctx, &c)
			})
			if code != exitOK {
				return errors.New("the load process has failed")
			}
			return nil
		},
	}
}
