package daemon

import (
	"fmt"
	"log/slog"

	"sequins/config"
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
