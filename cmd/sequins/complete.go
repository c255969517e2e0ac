package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sequins/internal/names"
)

// completeTimeout is how long a completion waits for a node.
const completeTimeout = time.Second

// complete returns a function that completes names from the status of the node that the command line so far names: of a database, and then
// of some of its versions, or if versions is -1 of any number of databases. Without an answer in time there is nothing to choose from,
// and no error: people have not finished typing. What a node sends is not offered unless it is a valid name: shells evaluate it.
func (f *nodeFlags) complete(versions int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		at := *f
		args = at.take(args)
		if versions >= 0 && len(args) > versions {
			return nil, none
		}
		c, err := at.client(completeTimeout)
		if err != nil {
			return nil, none
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		st, _, err := c.Status(ctx)
		if err != nil {
			return nil, none
		}
		found, valid := slices.Sorted(maps.Keys(st.DBs)), names.ValidDatabase
		if versions > 0 && len(args) > 0 {
			found, valid = slices.Sorted(maps.Keys(st.DBs[args[0]].Versions)), names.Valid
			slices.Reverse(found) // the newest first
		}
		found = slices.DeleteFunc(found, func(name string) bool { return slices.Contains(args, name) || !valid(name) })
		return found, none | cobra.ShellCompDirectiveKeepOrder
	}
}
