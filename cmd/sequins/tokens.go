package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"sequins/config"
	"sequins/server/auth"
)

// A tokenFile holds the tokens of [auth], which follow their file: a removed token becomes invalid within a moment, also on open
// connections.
type tokenFile struct {
	followed
	tokens *auth.Tokens
	path   string
}

// openTokens reads the file. It returns nil if none is configured.
func openTokens(c config.Auth, log *slog.Logger) (*tokenFile, error) {
	if c.TokensFile == "" {
		return nil, nil
	}
	tokens, err := auth.Open(c.TokensFile)
	if err != nil {
		return nil, fmt.Errorf("auth.tokens_file: %w", err)
	}
	f := &tokenFile{tokens: tokens, path: c.TokensFile}
	f.followed = followed{what: "the tokens", log: log, changed: tokens.Changed, read: func() error {
		err := tokens.Reload()
		if err == nil {
			f.describe("the tokens have been read again")
		}
		return err
	}}
	f.describe("requests need a token")
	return f, nil
}

func (f *tokenFile) describe(msg string) {
	f.log.Info(msg, "file", f.path, "tokens", f.tokens.Len())
	if err := f.tokens.Exposed(); err != nil {
		f.log.Warn("the tokens file should be readable for sequins alone: chmod o=,g-w", "error", err)
	}
}

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
