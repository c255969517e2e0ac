package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sequins/client"
	"sequins/config"
	"sequins/internal/nearest"
	"sequins/internal/term"
	"sequins/node/daemon"
)

// nodeFlags are the flags of all commands that ask a node: which one, and what they show it.
type nodeFlags struct {
	server, tokenPath string
	files             config.TLS
	// config is the file that names the node of this machine, "" for the usual ones.
	config string
}

func (f *nodeFlags) register(cmd *cobra.Command) {
	f.registerNode(cmd)
	registerConfig(cmd.Flags(), &f.config)
}

// registerNode registers the flags of a command that has --config for its source.
func (f *nodeFlags) registerNode(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.server, "server", "", "`address` (host:port) or URL of a node (default: "+serverVariable+", or bind of sequins.conf)")
	flags.StringVar(&f.tokenPath, "token-file", "", "`file` with a token, - for stdin (default: variable "+tokenVariable+")")
	flags.StringVar(&f.files.CA, "ca", "", "PEM `file` with the CA certificates for an https URL")
	flags.StringVar(&f.files.Certificate, "certificate", "", "PEM `file` with a client certificate")
	flags.StringVar(&f.files.Key, "certificate-key", "", "PEM `file` with the key of --certificate")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
}

func registerConfig(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "config", "", "configuration `file` (default sequins.conf, then /etc/sequins.conf)")
}

// nodeHelp is the part of the help texts about which node is asked.
const nodeHelp = `The node is that of --server or of the variable SEQUINS_SERVER, host:port or the URL of
any node of a cluster. The default is the node of this machine, bind of sequins.conf.`

// serverVariable is the environment variable with the node that commands ask unless the command line names one.
const serverVariable = "SEQUINS_SERVER"

// ask calls run with a client of the node. It gives an error its exit code; the first argument is a database.
func (f *nodeFlags) ask(cmd *cobra.Command, args []string, run func(c *client.Node) error) error {
	c, err := f.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return ofNode(cmd.Context(), c, strings.Join(args[:min(len(args), 1)], ""), run(c))
}

// client returns a client of the node, which must be closed.
func (f *nodeFlags) client() (*client.Node, error) {
	base, secure, err := f.url()
	if err != nil {
		return nil, err
	}
	token, err := ownToken(f.tokenPath)
	if err != nil {
		return nil, err
	}
	return client.NewNode(client.NodeOptions{URL: base, Token: token, TLS: secure}), nil
}

// url returns the URL of the node and the TLS settings for it. Without --server and without the variable it is the node of the
// configuration.
func (f *nodeFlags) url() (base string, secure *tls.Config, err error) {
	server := f.server
	if f.config == "" {
		server = cmp.Or(server, os.Getenv(serverVariable))
	}
	if server != "" {
		if base, err = addressURL(server); err != nil {
			return "", nil, err
		}
		secure, err = daemon.ClientTLS(f.files, "--ca", "--certificate")
		return base, secure, err
	}
	path := cmp.Or(f.config, config.Find(config.SearchPath))
	if path == "" {
		base, err = addressURL(config.Default().Bind)
		return base, nil, err
	}
	c, _, err := config.Load(path)
	if err != nil {
		return "", nil, fmt.Errorf("finding the node of this machine: %w\nname one with --server", err)
	}
	if base, err = addressURL(c.Bind); err != nil || c.TLS.Certificate == "" {
		return base, nil, err
	}
	secure, err = daemon.ClientTLS(config.TLS{Certificate: c.TLS.Certificate, Key: c.TLS.Key}, "", "tls.certificate")
	if err != nil {
		return "", nil, err
	}
	secure.InsecureSkipVerify = true // it is this machine, by an address that its certificate may not name
	return secureURL(base), secure, nil
}

func secureURL(base string) string { return "https://" + strings.TrimPrefix(base, "http://") }

// addressURL returns the URL for a host:port. An unspecified address becomes the loopback address.
func addressURL(address string) (string, error) {
	if strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		return strings.TrimRight(address, "/"), nil
	}
	host, port, err := net.SplitHostPort(address)
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		return "", usageError(fmt.Errorf("%q with a user is not the host:port of a node: a URL can have one", address[i+1:]))
	}
	if err != nil || port == "" {
		return "", usageError(fmt.Errorf("%q is neither the host:port nor the URL of a node", address))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", usageError(fmt.Errorf("%q is neither the host:port nor the URL of a node: %q is no port", address, port))
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// nodeCodes are the exit codes for what a node did not answer.
var nodeCodes = map[error]int{
	client.ErrUnreachable: exitUnreachable, client.ErrUnavailable: exitUnreachable,
	client.ErrNotFound: exitAbsent, client.ErrNoDB: exitAbsent, client.ErrNoVersion: exitAbsent,
	client.ErrDenied: exitUnreadable, client.ErrDamaged: exitUnreadable,
}

// ofNode gives an error of a request to a node its exit code, and if the node does not have the db, adds which one may be meant.
func ofNode(ctx context.Context, c *client.Node, db string, err error) error {
	refused, is := errors.AsType[*client.NodeError](err)
	if !is {
		return err
	}
	if refused.Kind == client.ErrNoDB {
		if st, serr := c.Status(ctx); serr == nil {
			err = noDB(c.URL(), db, slices.Sorted(maps.Keys(st.DBs)))
		}
	}
	if code, known := nodeCodes[refused.Kind]; known {
		return withCode(code, err)
	}
	return err
}

// noDB returns the error for a database that a node does not have among its own.
func noDB(base, db string, known []string) error {
	return withCode(exitAbsent, fmt.Errorf("%s has no database %q%s", base, db, nearest.DidYouMean(term.Clean(nearest.Of(db, known)))))
}
