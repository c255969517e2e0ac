package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"sequins/auth"
	"sequins/config"
)

// A tokenFile keeps the tokens of [auth] as they are in their file now.
type tokenFile struct {
	tokens *auth.Tokens
	path   string
	log    *slog.Logger

	mu   sync.Mutex
	said string // the last error, not to be said again
}

// openTokens reads the file; nil if the configuration names none.
func openTokens(c config.Auth, log *slog.Logger) (*tokenFile, error) {
	if c.TokensFile == "" {
		return nil, nil
	}
	tokens, err := auth.Open(c.TokensFile)
	if err != nil {
		return nil, fmt.Errorf("auth.tokens_file: %w", err)
	}
	f := &tokenFile{tokens: tokens, path: c.TokensFile, log: log}
	f.tell("requests need a token")
	return f, nil
}

// follow looks at the file until ctx ends: a token that has been taken out is of no use a moment later, on
// connections that are open too.
func (f *tokenFile) follow(ctx context.Context) {
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if f.tokens.Changed() {
				f.reload(false) //nolint:errcheck // it has been logged
			}
		}
	}
}

// reload reads the file again. One that is not good, maybe because only half of it has been written yet,
// changes nothing, and is looked at again. What is wrong with it is said once, or if somebody asks again.
func (f *tokenFile) reload(asked bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.tokens.Reload()
	if err == nil {
		f.said = ""
		f.tell("the tokens have been read again")
		return nil
	}
	if asked || err.Error() != f.said {
		f.log.Error("the tokens file is not good; the old tokens stay", "error", err)
	}
	f.said = err.Error()
	return err
}

func (f *tokenFile) tell(msg string) {
	f.log.Info(msg, "file", f.path, "tokens", f.tokens.Len())
	if err := f.tokens.Exposed(); err != nil {
		f.log.Warn("the tokens file should be readable for sequins alone: chmod o=,g-w", "error", err)
	}
}

// tokenVariable names the environment variable with a token for commands that ask a node.
const tokenVariable = "SEQUINS_TOKEN"

// ownToken is what a command shows to a node: what is in a file, or in the environment if that is "". It is no
// argument, as everybody on a machine can see those. It is "" if there is none.
func ownToken(file string) (string, error) {
	name, token := tokenVariable, os.Getenv(tokenVariable)
	if file != "" {
		name = "--token-file"
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		defer f.Close() //nolint:errcheck // it is only read
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

// errNoToken says what to do where a node wants a token.
var errNoToken = errors.New("it wants a token that may see status pages: name its file with --token-file, or put it into " + tokenVariable)
