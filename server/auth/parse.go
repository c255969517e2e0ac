package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"sequins/internal/names"
)

// Limits of a tokens file.
const (
	// MaxTokens is the maximum number of tokens in a file. Every request's token
	// is compared with all of them.
	MaxTokens = 1000
	// MinToken and MaxToken bound the length of a token, in bytes. A shorter one
	// can be guessed.
	MinToken, MaxToken = 16, 512
	maxFile            = 1 << 20
	maxName            = 64
)

type digest = [sha256.Size]byte

// table is a parsed file. grants[i] belongs to the digest at i.
type table struct {
	digests []digest
	grants  []Grant

	fingerprint string // of the file
	mode        os.FileMode
}

// parse parses a tokens file. An error names the file and the line.
func parse(file string, doc []byte) (*table, error) {
	t := new(table)
	byName, byToken := make(map[string]int), make(map[digest]int) // values are line numbers
	number := 0
	for line := range bytes.Lines(doc) {
		number++
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		g, d, err := parseLine(fields)
		switch {
		case err != nil:
		case byName[g.Name] > 0:
			err = fmt.Errorf("same name as line %d", byName[g.Name])
		case byToken[d] > 0:
			err = fmt.Errorf("same token as line %d", byToken[d])
		case len(t.grants) == MaxTokens:
			err = fmt.Errorf("more than %d tokens", MaxTokens)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		byName[g.Name], byToken[d] = number, number
		g.digest, g.table = d, t
		t.digests, t.grants = append(t.digests, d), append(t.grants, g)
	}
	if len(t.grants) == 0 {
		return nil, fmt.Errorf("%s: no token in the file, so all requests would be refused", file)
	}
	return t, nil
}

// Errors about a line contain nothing of it: see the package comment.
var (
	errFields    = errors.New("want: name token databases [pages]")
	errName      = fmt.Errorf("the first field is not a name: up to %d letters, digits and ._-, beginning with a letter or digit", maxName)
	errDigest    = errors.New("the second field is sha256: without 64 hex digits after it")
	errDatabases = errors.New("the third field is not *, - or a comma-separated list of databases")
	errMay       = errors.New("the fourth field is not pages")
	errNothing   = errors.New("the token permits nothing: no database and no pages")
)

func parseLine(fields []string) (g Grant, d digest, err error) {
	if len(fields) < 3 || len(fields) > 4 {
		return g, d, errFields
	}
	g.Name = fields[0]
	if !names.ValidToken(g.Name) || len(g.Name) > maxName {
		return g, d, errName
	}
	if d, err = parseToken(fields[1]); err != nil {
		return g, d, err
	}
	if len(fields) == 4 {
		if fields[3] != "pages" {
			return g, d, errMay
		}
		g.Pages = true
	}
	return g, d, g.parseDatabases(fields[2])
}

// escapedComma stands for a comma in the name of a database, as commas separate the names. Names have no '%'.
const escapedComma = "%2C"

func (g *Grant) parseDatabases(field string) error {
	switch {
	case field == "*":
		g.all = true
		return nil
	case field == "-" && g.Pages:
		return nil
	case field == "-":
		return errNothing
	}
	g.databases = make(map[string]struct{})
	for name := range strings.SplitSeq(field, ",") {
		name = strings.ReplaceAll(name, escapedComma, ",")
		if !names.Valid(name) {
			return errDatabases
		}
		g.databases[name] = struct{}{}
	}
	return nil
}

func parseToken(s string) (d digest, err error) {
	written, ok := strings.CutPrefix(s, "sha256:")
	if !ok {
		if err := CheckToken(s); err != nil {
			return d, fmt.Errorf("the second field %w", err)
		}
		return sha256.Sum256([]byte(s)), nil
	}
	if len(written) != hex.EncodedLen(len(d)) {
		return d, errDigest
	}
	if _, err := hex.Decode(d[:], []byte(written)); err != nil {
		return d, errDigest
	}
	return d, nil
}

var tokenText = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// CheckToken returns an error if a token has an invalid length, or bytes that the
// Authorization header cannot contain (RFC 6750). The error does not contain the
// token; it is a predicate, to be appended to the name of what is invalid.
func CheckToken(s string) error {
	if len(s) < MinToken || len(s) > MaxToken {
		return fmt.Errorf("is not a token: %d bytes, want %d to %d", len(s), MinToken, MaxToken)
	}
	if !tokenText.MatchString(s) {
		return errors.New("is not a token: want letters, digits and -._~+/, optionally followed by =")
	}
	return nil
}
