package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"sequins/config"
	"sequins/observe/status"
	"sequins/server/auth"
)

// A tokenFile holds the tokens of [auth], reloaded when their file changes.
type tokenFile struct {
	tokens *auth.Tokens
	path   string
	log    *slog.Logger

	turn sync.Mutex // one reading at a time, which may hang
	mu   sync.Mutex
	said string // the error of the file as it is now, which is logged only once
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
	f := &tokenFile{tokens: tokens, path: c.TokensFile, log: log}
	f.tell("requests need a token")
	return f, nil
}

// follow checks the file until ctx ends, so that a removed token becomes invalid within a moment, also
// on open connections.
func (f *tokenFile) follow(ctx context.Context) {
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look()
		}
	}
}

// look reads the file again if it has changed since it was read without an error.
func (f *tokenFile) look() {
	if f.tokens.Changed() {
		f.reload(false) //nolint:errcheck // it has been logged
		return
	}
	f.say("") // the former file may have been put back
}

// say sets the error of the file, and returns the former one.
func (f *tokenFile) say(said string) (former string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	former, f.said = f.said, said
	return former
}

// reload reads the file again. An invalid file, maybe because it is only half written, is ignored and
// read again later. Its error is logged once, or each time if asked is true.
func (f *tokenFile) reload(asked bool) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	err := f.tokens.Reload()
	if err == nil {
		f.say("")
		f.tell("the tokens have been read again")
		return nil
	}
	if former := f.say(err.Error()); asked || err.Error() != former {
		f.log.Error("the tokens file is not good; the old tokens stay", "error", err)
	}
	return err
}

func (f *tokenFile) tell(msg string) {
	f.log.Info(msg, "file", f.path, "tokens", f.tokens.Len())
	if err := f.tokens.Exposed(); err != nil {
		f.log.Warn("the tokens file should be readable for sequins alone: chmod o=,g-w", "error", err)
	}
}

// describe adds what is wrong with the tokens file to a status.
func (f *tokenFile) describe(st *status.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st.TokensError = f.said
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
