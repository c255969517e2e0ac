package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/diff"
	"sequins/internal/human"
	"sequins/internal/names"
)

// diffFlags are the flags of sequins diff.
type diffFlags struct {
	server, tokenPath string
	files             config.TLS
	list, json        bool
}

func diffCommand() *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use: "diff DB OLD NEW", Args: cobra.ExactArgs(3), ValidArgsFunction: cobra.NoFileCompletions,
		Short: "Compare two versions of a database that nodes have",
		Long: `Compare two versions of a database: how many keys the new one has added, removed
and changed, in which partitions, with some of the keys. Both must be on the
nodes: the one that is served, one that is held or prepared, or one that
keep_versions keeps. Blocks with the same content are not read.

A node compares the partitions that it has of both versions, and asks the others
for the rest. If the versions are partitioned differently, one node must have all
of both.

Exits with 1 if something could not be compared.`,
		Example: `  sequins diff words 2026-01-31 2026-02-01
  sequins diff words 2026-01-31 2026-02-01 --list --server node1:9599`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "`address` (host:port) or URL of any node (default: bind of sequins.conf)")
	flags.BoolVar(&f.list, "list", false, "print every key that differs, a JSON object in a line, and the result last")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.StringVar(&f.files.CA, "ca", "", "PEM `file` with the CA certificates for an https URL")
	flags.StringVar(&f.files.Certificate, "certificate", "", "PEM `file` with a client certificate")
	flags.StringVar(&f.files.Key, "key", "", "PEM `file` with the key of --certificate")
	flags.StringVar(&f.tokenPath, "token-file", "", "`file` with a token, or - for the standard input (default: environment variable "+tokenVariable+")")
	return cmd
}

func (f *diffFlags) run(ctx context.Context, out, progress io.Writer, args []string) error {
	for _, name := range args[1:] {
		if !names.Valid(name) {
			return usageError{fmt.Errorf("%q cannot be the name of a version", name)}
		}
	}
	var addr []string
	if f.server != "" {
		addr = []string{f.server}
	}
	base, secure, err := nodeURL(addr, f.files)
	if err != nil {
		return err
	}
	token, err := ownToken(f.tokenPath)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	target := base + "/" + url.PathEscape(args[0]) + "?diff=" + url.QueryEscape(args[1]+".."+args[2])
	if f.list {
		target += "&list"
	}
	body, err := fetchLines(ctx, &http.Client{Transport: transport}, target, token)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	report, err := f.read(body, out, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", base, err)
	}
	if len(report.Unknown) > 0 {
		return fmt.Errorf("%s were not compared: no node that answers has them of both versions: %s",
			human.Plural(len(report.Unknown), "partition"), unknown(report.Unknown))
	}
	return nil
}

// unknown names the partitions that were not compared.
func unknown(partitions []int) string {
	if partitions[0] < 0 {
		return "all, as the versions are partitioned differently"
	}
	return human.Ranges(partitions)
}

// fetchLines requests lines of JSON.
func fetchLines(ctx context.Context, client *http.Client, target, token string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/x-ndjson")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	err = fmt.Errorf("the node answers with %s: %s", resp.Status, plain(strings.TrimSpace(string(text))))
	return nil, errors.Join(err, resp.Body.Close())
}

// read prints an answer. Progress is shown after a second, on a terminal.
func (f *diffFlags) read(body io.Reader, out, progress io.Writer) (*diff.Report, error) {
	w := bufio.NewWriter(out)
	began := time.Now()
	shown := false
	report, err := diff.Read(body, func(d diff.Difference) error { return printJSON(w, d) }, func(p diff.Progress) {
		if isTerminal(progress) && time.Since(began) > time.Second {
			shown = true
			_, _ = fmt.Fprintf(progress, "\r%d of %s compared", p.Done, human.Plural(p.Of, "partition"))
		}
	})
	if shown {
		_, _ = fmt.Fprintln(progress)
	}
	switch {
	case err != nil:
	case f.list || f.json:
		err = printJSON(w, report)
	default:
		err = printDiff(w, report)
	}
	return report, errors.Join(err, w.Flush())
}

func printJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(data, '\n'))
	}
	return err
}

// printDiff prints a report for people.
func printDiff(w io.Writer, r *diff.Report) error {
	t := newTable(w, "PARTITION", "RECORDS BEFORE", "RECORDS", "ADDED", "REMOVED", "CHANGED", "BYTES ADDED", "BYTES REMOVED")
	row := func(name string, c *diff.Counts) {
		t.row(name, human.Count(c.OldRecords), human.Count(c.NewRecords), human.Count(c.Added), human.Count(c.Removed), human.Count(c.Changed),
			human.Count(c.AddedBytes), human.Count(c.RemovedBytes))
	}
	for i := range r.Partitions {
		if p := &r.Partitions[i]; p.Partition >= 0 {
			row(strconv.Itoa(p.Partition), &p.Counts)
		}
	}
	row("all", &r.Counts)
	if err := t.flush(); err != nil {
		return err
	}
	for _, op := range diff.Ops {
		var keys []string
		for _, k := range r.Samples[op] {
			keys = append(keys, strconv.Quote(string(k)))
		}
		if len(keys) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", op, strings.Join(keys, ", ")); err != nil {
			return err
		}
	}
	return nil
}
