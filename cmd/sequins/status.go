package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
	"sequins/internal/human"
	"sequins/status"
)

func statusCommand() *cobra.Command {
	var watch bool
	var files config.TLS
	var tokenPath string
	cmd := &cobra.Command{
		Use:   "status [ADDR]",
		Short: "Show the health, databases and versions of a running sequins",
		Long: `Show the status of a running sequins: one line of health, a table with a line for
each version of each database, and a table of the nodes and their disks. A star
marks the versions that are served.

ADDR is host:port or a URL. The default is bind of sequins.conf or
/etc/sequins.conf, and 127.0.0.1:9599 without such a file.

Exits with 0 if the node is healthy: every database is served, from a version
whose partitions are held by enough nodes, no version failed to load or is held
by the gate, and the source can be read. Exits with 1 if it is not healthy or
cannot be reached. With --watch, the last status counts.

If requests need a token ([auth] tokens_file), it must allow status pages. It is
read from the file --token-file or from SEQUINS_TOKEN.`,
		Example: `  sequins status
  sequins status --watch node1.example.com:9599`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			base, secure, err := nodeURL(args, files)
			if err != nil {
				return err
			}
			token, err := ownToken(tokenPath)
			if err != nil {
				return err
			}
			s := statusClient{base: base, token: token, http: &http.Client{Timeout: statusTimeout, Transport: &http.Transport{TLSClientConfig: secure}}}
			defer s.http.CloseIdleConnections()
			if !watch {
				return s.show(cmd.Context(), cmd.OutOrStdout())
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return s.watch(ctx, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&files.CA, "ca", "", "PEM `file` with the CA certificates for an https URL")
	cmd.Flags().StringVar(&files.Certificate, "certificate", "", "PEM `file` with a client certificate")
	cmd.Flags().StringVar(&files.Key, "key", "", "PEM `file` with the key of --certificate")
	cmd.Flags().StringVar(&tokenPath, "token-file", "", "`file` with a token, or - for the standard input (default: environment variable "+tokenVariable+")")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "refresh every two seconds, until ^C")
	return cmd
}

const (
	// statusTimeout is how long a node may take to answer.
	statusTimeout = 10 * time.Second
	// statusPeriod is the interval of --watch.
	statusPeriod = 2 * time.Second
	// maxStatus limits the answer, in bytes. A hundred thousand versions fit.
	maxStatus = 64 << 20
)

// errUnhealthy sets exit code 1. It has no text, because the reason was printed.
var errUnhealthy = errors.New("")

// nodeURL returns the URL of the node named by the arguments, or else by the configuration of this
// machine, and the TLS settings for it.
func nodeURL(args []string, files config.TLS) (base string, secure *tls.Config, err error) {
	if len(args) > 0 {
		if base, err = addressURL(args[0]); err != nil {
			return "", nil, err
		}
		secure, err = clientTLS(files, "--ca", "--certificate")
		return base, secure, err
	}
	path := config.Find(config.SearchPath)
	if path == "" {
		base, err = addressURL(config.Default().Bind)
		return base, nil, err
	}
	c, _, err := config.Load(path)
	if err != nil {
		return "", nil, fmt.Errorf("finding the node of this machine: %w\nname its address", err)
	}
	if base, err = addressURL(c.Bind); err != nil || c.TLS.Certificate == "" {
		return base, nil, err
	}
	keys, err := openKeyring(c.TLS, slog.Default())
	if err != nil {
		return "", nil, err
	}
	return secureURL(base), keys.self(), nil
}

// secureURL returns the URL with https.
func secureURL(base string) string { return "https://" + strings.TrimPrefix(base, "http://") }

// addressURL returns the URL for a host:port. An unspecified address becomes the loopback address.
func addressURL(address string) (string, error) {
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return strings.TrimRight(address, "/"), nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return "", usageError{fmt.Errorf("%q is neither host:port nor a URL", address)}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", usageError{fmt.Errorf("%q is neither host:port nor a URL of http or https: %q is no port", address, port)}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

type statusClient struct {
	base  string
	token string // "" if there is none
	http  *http.Client
}

// show prints the status once.
func (s *statusClient) show(ctx context.Context, out io.Writer) error {
	st, err := s.ask(ctx)
	if err != nil {
		return err
	}
	if err := printStatus(out, &st, s.base, time.Now()); err != nil {
		return err
	}
	if !st.Healthy {
		return errUnhealthy
	}
	return nil
}

// watch prints the status periodically, on a terminal in place, and returns the result of the last
// request when ctx ends. It continues after errors.
func (s *statusClient) watch(ctx context.Context, out io.Writer) error {
	tick := time.NewTicker(statusPeriod)
	defer tick.Stop()
	var last error
	for {
		var page strings.Builder
		err := s.show(ctx, &page)
		if ctx.Err() != nil { // during the request
			return last
		}
		if last = err; err != nil && !errors.Is(err, errUnhealthy) {
			fmt.Fprintln(&page, err)
			last = errUnhealthy
		}
		if err := printPage(out, page.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// printPage prints a page over the previous one if possible, otherwise below it.
func printPage(out io.Writer, page string) error {
	const home, clearBelow = "\x1b[H", "\x1b[J"
	if isTerminal(out) {
		page = home + clearBelow + page
	} else {
		page += "\n"
	}
	_, err := io.WriteString(out, page)
	return err
}

func (s *statusClient) ask(ctx context.Context) (st status.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/", nil)
	if err != nil {
		return st, err
	}
	req.Header.Set("Accept", "text/plain, application/json;q=0.9") // errors as text
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return st, s.unreachable(err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus+1))
	switch {
	case err != nil:
		return st, fmt.Errorf("%s: %w", s.base, err)
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return st, fmt.Errorf("%s answers with %s: %w", s.base, resp.Status, errNoToken)
	case resp.StatusCode != http.StatusOK:
		return st, fmt.Errorf("%s answers with %s%s", s.base, plain(resp.Status), firstLine(body))
	case len(body) > maxStatus:
		return st, fmt.Errorf("%s answers with more than %d bytes", s.base, maxStatus)
	}
	if err := json.Unmarshal(body, &st); err != nil || st.DBs == nil {
		return st, fmt.Errorf("%s does not answer as sequins does", s.base)
	}
	return st, nil
}

// printStatus writes the table. Data from the network is escaped.
func printStatus(out io.Writer, st *status.Status, base string, now time.Time) error {
	head := []string{plain(base)}
	if st.Build != "" {
		head = append(head, "sequins "+plain(st.Build))
	}
	if !st.StartedAt.IsZero() {
		head = append(head, "up for "+human.Duration(now.Sub(st.StartedAt)))
	}
	lines := []string{strings.Join(head, ", "), plain(st.Health)}
	for _, f := range st.Findings() {
		lines = append(lines, plain(f.Line(now)))
	}
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		if p := st.DBs[name].Pin; p != nil {
			lines = append(lines, plain(name+" is "+p.String()))
		}
	}
	if _, err := fmt.Fprintln(out, strings.Join(lines, "\n")); err != nil {
		return err
	}
	if err := printDBs(out, st, now); err != nil {
		return err
	}
	return printNodes(out, st)
}

func printDBs(out io.Writer, st *status.Status, now time.Time) error {
	if len(st.DBs) == 0 {
		return nil
	}
	t := newTable(out, "DATABASE", "VERSION", "STATE", "PARTITIONS", "RECORDS", "SIZE", "DATA FROM", "")
	for _, name := range slices.Sorted(maps.Keys(st.DBs)) {
		addRows(t, st.DBs[name], name, st.Node, now)
	}
	return t.flush()
}

// addRows adds a row for each version of a db, the newest first.
func addRows(t *table, d status.DB, name, node string, now time.Time) {
	if len(d.Versions) == 0 {
		t.row(plain(name), "-", "-", "-", "-", "-", "-", plain(d.Error))
		return
	}
	label := plain(name)
	for _, version := range slices.Backward(slices.Sorted(maps.Keys(d.Versions))) {
		v := d.Versions[version]
		n := v.Nodes[node]
		star := ""
		if n.Current {
			star = " *"
		}
		t.row(label, plain(version)+star, plain(string(n.State)), fmt.Sprintf("%d of %d", len(n.Partitions), v.NumPartitions),
			number(n.Records), size(n.Bytes), day(n.LastModified), plain(note(v, n, now)))
		label = ""
	}
}

// note returns remarks about a version on a node.
func note(v status.Version, n status.OnNode, now time.Time) string {
	var notes []string
	if p := n.Progress; p != nil && p.Bytes > 0 {
		notes = append(notes, fmt.Sprintf("%d%%", 100*p.BytesDone/p.Bytes))
		if left := p.ETA.Sub(now); left > 0 {
			notes = append(notes, "about "+human.Duration(left)+" left")
		}
	}
	if n.Current && !n.ActiveAt.IsZero() {
		notes = append(notes, "active for "+human.Duration(now.Sub(n.ActiveAt)))
	}
	if n.Unchanged > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d partitions unchanged", n.Unchanged, v.NumPartitions))
	}
	if n.Current && v.MissingPartitions > 0 {
		notes = append(notes, fmt.Sprintf("partitions on no node: %d", v.MissingPartitions))
	}
	if n.Current && v.UnderreplicatedPartitions > 0 {
		notes = append(notes, fmt.Sprintf("partitions on too few nodes: %d", v.UnderreplicatedPartitions))
	}
	for _, text := range []string{n.Detail, n.Error} {
		if text != "" {
			notes = append(notes, text)
		}
	}
	return strings.Join(notes, ", ")
}

// isTerminal reports whether w may be a terminal. It returns true for /dev/null, which is harmless.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
