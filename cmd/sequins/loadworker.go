package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/load/loadproc"
	"sequins/source"
)

// loadSource is the part of the configuration that openSource needs in a load process.
type loadSource struct {
	Source string
	S3     config.S3
	Azure  config.Azure
	HDFS   config.HDFS
}

// loadLauncher returns a launcher of load processes that read from the configured source.
func loadLauncher(c *config.Config) *loadproc.Launcher {
	return &loadproc.Launcher{Source: loadSource{c.Source, c.S3, c.Azure, c.HDFS}}
}

// loadWorkerCommand is the command of a load process, which only a node starts.
func loadWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    loadproc.Command,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if code := loadproc.Main(openLoadSource); code != exitOK {
				return errors.New("the load process has failed")
			}
			return nil
		},
	}
}

// openLoadSource opens the source described by a loadSource.
func openLoadSource(ctx context.Context, spec json.RawMessage) (source.Source, error) {
	var s loadSource
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, err
	}
	return openSource(ctx, &config.Config{Source: s.Source, S3: s.S3, Azure: s.Azure, HDFS: s.HDFS})
}
