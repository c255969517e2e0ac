package main

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Write manual pages in section 1 into a directory: sequins.1, and one for each
command. Packages have them already.`,
		Example: `  sequins man /usr/local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			forMan(root)
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "sequins " + buildName(), Manual: "sequins"}, args[0])
		},
	}
}

// forMan converts help texts for terminals to Markdown, from which manual pages are made: < must be
// escaped.
func forMan(cmd *cobra.Command) {
	escape := strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`)
	cmd.Long = escape.Replace(cmd.Long)
	for _, sub := range cmd.Commands() {
		forMan(sub)
	}
}

// release is set by the linker in release builds (make build).
var release string

// buildName returns the name of this build: the release, or the revision that Go recorded.
func buildName() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
