// Package docs has the pages of the documentation that the program shows itself.
package docs

import _ "embed" // openapi.yaml

// OpenAPI describes the HTTP interface, in YAML.
//
//go:embed openapi.yaml
var OpenAPI []byte
