// Package docs has the pages of the documentation that the program shows itself.
package docs

import _ "embed" // RUNBOOK.md and openapi.yaml

// Runbook is the runbook, in Markdown.
//
//go:embed RUNBOOK.md
var Runbook []byte

// OpenAPI describes the HTTP interface, in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
