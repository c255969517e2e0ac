package data

import (
	"os"

	"sequins/blocks"
	"sequins/shard"
)

// WriteBlock writes the block of a partition of the records.
func (s Spec) WriteBlock(path string, o blocks.WriterOptions) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := blocks.NewWriter(f, o)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := s.Each(func(key, value []byte) error {
		if shard.String.Partition(key, o.Partitions) != o.Partition {
			return nil
		}
		return w.Add(key, value)
	}); err != nil {
		return err
	}
	if _, err := w.Finish(); err != nil {
		return err
	}
	return f.Sync()
}
