package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sequins/config"
	"sequins/internal/sleep"
	"sequins/server/auth"
)

// A tokenFile holds the tokens of [auth], which follow their file: a removed token becomes invalid within a moment, also on open
// connections.
type tokenFile struct {
	followed
	tokens *auth.Tokens
}

// openTokens reads the file. It returns nil if none is configured.
func openTokens(c config.Auth, log *slog.Logger) (*tokenFile, error) {
	if c.TokensFile == "" {
		return nil, nil
	}
	f := &tokenFile{followed: followed{what: "the tokens", log: log, files: []string{c.TokensFile}}}
	f.inUse = f.stat()
	var err error
	if f.tokens, err = auth.Open(c.TokensFile); err != nil {
		return nil, fmt.Errorf("auth.tokens_file: %w", err)
	}
	f.read = func() error {
		err := f.tokens.Reload()
		if err == nil {
			f.describe("the tokens have been read again")
		}
		return err
	}
	f.describe("requests need a token")
	return f, nil
}

func (f *tokenFile) describe(msg string) {
	f.log.Info(msg, "file", f.files[0], "tokens", f.tokens.Len())
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

// followed is what was read from files that may change while the node runs: it is read again when they have changed. Files that are not good,
// maybe because only one of a pair has been replaced so far, are not used, and read again later.
type followed struct {
	what  string // for the log
	log   *slog.Logger
	files []string     // "" for one that is not configured
	read  func() error // reads the files and uses them, if they are good

	turn  sync.Mutex             // one reading at a time, which may hang
	inUse []os.FileInfo          // the files as they were before they were read
	fault atomic.Pointer[string] // why the files as they are now are not in use, nil if they are; it is logged only once
}

// followPeriod is the interval between looks at the files.
const followPeriod = time.Second

// follow looks at the files until ctx ends.
func (f *followed) follow(ctx context.Context) {
	for sleep.For(ctx, followPeriod) == nil {
		_ = f.look(false) // the error is logged
	}
}

// stat returns the files as they are, nil for one that is not there.
func (f *followed) stat() []os.FileInfo {
	found := make([]os.FileInfo, len(f.files))
	for i, name := range f.files {
		found[i], _ = os.Stat(name)
	}
	return found
}

// isSame reports whether a file has not been replaced or changed between two looks at it.
func isSame(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}

// look reads the files again if they have changed or it is asked to, and returns why they are not in use. It logs an error that nobody
// has asked for once.
func (f *followed) look(asked bool) error {
	f.turn.Lock()
	defer f.turn.Unlock()
	now := f.stat()
	if !asked && slices.EqualFunc(now, f.inUse, isSame) {
		f.fault.Store(nil) // the former files may have been put back
		return nil
	}
	err := f.read()
	if err == nil {
		f.inUse = now
		f.fault.Store(nil)
		return nil
	}
	text := err.Error()
	if former := f.fault.Swap(&text); asked || former == nil || *former != text {
		f.log.Error("files have changed and are not good; the old ones stay", "files", f.what, "error", err)
	}
	return err
}

// problem returns why the files as they are now are not in use, "" if they are.
func (f *followed) problem() string {
	if fault := f.fault.Load(); fault != nil {
		return *fault
	}
	return ""
}
