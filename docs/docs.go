// Package docs has the pages of the documentation that the program shows itself.
package docs

import _ "embed" // RUNBOOK.md

// Runbook is the runbook, in Markdown.
//
//go:embed RUNBOOK.md
var Runbook []byte
