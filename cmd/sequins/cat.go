package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sequins/internal/term"
)

func catCommand() *cobra.Command {
	var f fileFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cat FILE",
		Short: "Print every record of a file",
		Long: `Print every record of a block, a SequenceFile, a Sparkey log, an Avro or a Parquet
file in its order, one per line: key, tab, value. Bytes that are not printable
UTF-8 are written as \xNN, tab, newline and return as \t, \n and \r, a backslash
as \\. Without the field of the key, records of Avro and Parquet are printed
without keys.

With --json each line is an object with "key" and "value", or "key_base64" and
"value_base64" where they are not UTF-8. A key that a Sparkey log deletes has no
value: nothing after the key, or in JSON "deleted": true.` + fileHelp + `

Records whose key is null are left out, with a warning. Exits with 3 if there is
no such file, 5 if the source does not answer, and 6 if it cannot be read.`,
		Example: `  sequins cat /var/sequins/data/words/2026-01-31/00003.block | head
  sequins cat --json part-r-00003 | jq .key
  sequins cat --config /etc/sequins.conf hdfs://namenode/sequins/words/2026-01-31/part-00003.avro`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cat(cmd, &f, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object per line")
	f.register(cmd)
	return cmd
}

func cat(cmd *cobra.Command, flags *fileFlags, path string, asJSON bool) (err error) {
	open, err := flags.files(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	d, file, err := open.openNamed(path, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	progress, out := newOutput(cmd, term.NewProgress(cmd.ErrOrStderr(), "printing "+d.path, d.size))
	defer progress.Stop()
	p := newRecordPrinter(out, asJSON)
	p.keyless = file.Kind().HasFields() && !open.keyed(d)
	if err := p.all(cmd.Context(), file, progress); err != nil {
		return d.failed(err)
	}
	progress.Stop()
	if n := file.NullKeys(); n > 0 {
		_, err = fmt.Fprintf(cmd.ErrOrStderr(), "left out: %d records whose key is null\n", n)
	}
	return err
}

// keyed reports whether the records of a file have a key.
func (f *files) keyed(d dataFile) bool {
	o, err := f.options(d)
	return err == nil && !o.Fields.NoKey
}

// all prints the records of a file.
func (p *recordPrinter) all(ctx context.Context, f openData, progress *term.Progress) error {
	for n := 0; f.Next(); n++ {
		if n%1024 == 0 {
			progress.Add(f.Consumed())
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		var err error
		if f.Deleted() {
			err = p.key(f.Key(), record{Deleted: true})
		} else {
			err = p.record(f.Key(), f.WriteValue)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(p.out.Flush(), f.Err())
}
