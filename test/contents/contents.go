// Package contents makes contents for tests.
package contents

import "sequins/internal/content"

// Of returns a content of a version. Equal arguments give equal contents, and others give other inputs and divisions.
func Of(name string, parts ...string) content.Content {
	hash := content.Sum(append([]string{name}, parts...)...)
	return content.Content{Input: content.Input{Name: name, Hash: hash}, Division: content.Sum(hash)}
}

// In returns the input of Of.
func In(name string, parts ...string) content.Input { return Of(name, parts...).Input }
