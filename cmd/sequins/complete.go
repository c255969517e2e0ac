package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/internal/names"
	"sequins/observe/status"
)

// Shells complete names of databases, versions and nodes from the status of the node that the command line so far names.
// Without an answer in time there is nothing to choose from, and no error: people have not finished typing.

// What a node sends is not offered unless it is a valid name or address: shells evaluate what they complete.

// hostPort matches addresses of nodes.
var hostPort = regexp.MustCompile(`^([0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]+$`)

// completeTimeout is how long a completion waits for a node.
const completeTimeout = time.Second

// noCompletion offers nothing, and no files.
const noCompletion = cobra.ShellCompDirectiveNoFileComp

// statusSoon returns the status of the node of the flags, if it answers at once, and its URL.
func (f *nodeFlags) statusSoon(ctx context.Context) (st status.Status, url string, ok bool) {
	c, err := f.client(completeTimeout)
	if err != nil {
		return st, "", false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	st, _, err = c.Status(ctx)
	return st, c.URL(), err == nil
}

// completeServer completes the address of a node.
func (f *nodeFlags) completeServer(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	here := *f
	here.server = "" // what is being typed
	st, url, ok := here.statusSoon(cmd.Context())
	if !ok {
		return nil, noCompletion
	}
	var nodes []string
	for _, addr := range append(slices.Sorted(maps.Keys(st.Peers)), st.Node) {
		if !hostPort.MatchString(addr) {
			continue // a single node does not know its address
		}
		if strings.HasPrefix(url, "https:") {
			addr = "https://" + addr
		}
		nodes = append(nodes, addr)
	}
	return nodes, noCompletion
}

// completeAfterNode completes the address of the node, unless --server has it, and what follows it or is without it by next.
func (f *nodeFlags) completeAfterNode(next cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if f.server != "" || len(args) > 0 {
			return next(cmd, f.take(args), toComplete)
		}
		found, directive := next(cmd, args, toComplete)
		nodes, _ := f.completeServer(cmd, args, toComplete)
		return append(found, nodes...), directive
	}
}

// completeDBs completes names of databases that are not among the arguments.
func (f *nodeFlags) completeDBs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	st, _, ok := f.statusSoon(cmd.Context())
	if !ok {
		return nil, noCompletion
	}
	dbs := slices.DeleteFunc(slices.Sorted(maps.Keys(st.DBs)), func(name string) bool {
		return slices.Contains(args, name) || !names.ValidDatabase(name)
	})
	return dbs, noCompletion
}

// completeVersions returns a function that completes the name of a database and then those of n versions of it.
func (f *nodeFlags) completeVersions(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return f.completeDBs(cmd, args, toComplete)
		case len(args) > n:
			return nil, noCompletion
		}
		st, _, ok := f.statusSoon(cmd.Context())
		if !ok {
			return nil, noCompletion
		}
		var versions []string
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(st.DBs[args[0]].Versions))) {
			if !slices.Contains(args[1:], name) && names.Valid(name) {
				versions = append(versions, name)
			}
		}
		return versions, noCompletion | cobra.ShellCompDirectiveKeepOrder
	}
}
