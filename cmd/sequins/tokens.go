package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"sequins/server/auth"
)

// tokenVariable is the environment variable with a token for commands that connect to a node.
const tokenVariable = "SEQUINS_TOKEN"

// ownToken returns the token of a command: the contents of a file, of the standard input if file is "-", or of the
// environment variable if file is "". It is not an argument, because arguments are visible to all users. It is "" if there is
// none.
func ownToken(file string) (string, error) {
	name, token := tokenVariable, os.Getenv(tokenVariable)
	if file != "" {
		name = "--token-file"
		f := os.Stdin
		if file != "-" {
			var err error
			if f, err = os.Open(file); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			defer f.Close() //nolint:errcheck // it is only read
		}
		doc, err := io.ReadAll(io.LimitReader(f, 2*auth.MaxToken))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		token = string(doc)
	}
	token = strings.TrimSpace(token)
	if token == "" && file == "" {
		return "", nil
	}
	if err := auth.CheckToken(token); err != nil {
		return "", fmt.Errorf("what is in %s %w", name, err)
	}
	return token, nil
}
