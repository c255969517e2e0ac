package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The limits of a file and of what is in it.
const (
	// MaxTokens is how many tokens a file may have: each is compared with what
	// every request presents.
	MaxTokens = 1000
	// MinToken and MaxToken are the lengths of a token, in bytes. What is shorter
	// can be guessed.
	MinToken, MaxToken = 16, 512
	maxFile            = 1 << 20
	maxName            = 64
)

// digest is the SHA-256 of a token.
type digest = [sha256.Size]byte

// table is what a file says. The grant at i is that of the digest at i.
type table struct {
	digests []digest
	grants  []Grant
}

// parse reads a tokens file. An error names the file and the line.
func parse(file string, doc []byte) (*table, error) {
	t := new(table)
	byName, byToken := make(map[string]int), make(map[digest]int) // the lines
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
			err = fmt.Errorf("it has the name of line %d", byName[g.Name])
		case byToken[d] > 0:
			err = fmt.Errorf("it has the token of line %d", byToken[d])
		case len(t.grants) == MaxTokens:
			err = fmt.Errorf("there are more than %d tokens", MaxTokens)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		byName[g.Name], byToken[d] = number, number
		t.digests, t.grants = append(t.digests, d), append(t.grants, g)
	}
	if len(t.grants) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it, and nobody could read anything", file)
	}
	return t, nil
}

// The errors of a line say nothing of what stands in it: see the package's comment.
var (
	errFields    = errors.New("a line is: name token databases [pages]")
	errName      = fmt.Errorf("the first field is no name: up to %d letters, digits and ._-, the first one a letter or digit", maxName)
	errDigest    = errors.New("the second field is sha256: with something else than 64 hex digits after it")
	errDatabases = errors.New("the third field is neither *, nor -, nor names of databases with commas between them")
	errMay       = errors.New("the fourth field is not: pages")
	errNothing   = errors.New("the token may do nothing: no database and no pages")
)

func parseLine(fields []string) (g Grant, d digest, err error) {
	if len(fields) < 3 || len(fields) > 4 {
		return g, d, errFields
	}
	g.Name = fields[0]
	if !isName(g.Name) || len(g.Name) > maxName {
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
		if !isName(name) {
			return errDatabases
		}
		g.databases[name] = struct{}{}
	}
	return nil
}

// isName says whether s is what databases, and tokens, can be called.
func isName(s string) bool {
	return s != "" && !strings.Contains("._-", s[:1]) && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return !isAlphanumeric(c) && c != '.' && c != '_' && c != '-'
	})
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// parseToken makes a digest of either form of a token.
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

// CheckToken says what is wrong with a token, if anything: its length, or bytes
// that the header of a request cannot have in one (RFC 6750). The error does not
// hold the token and reads on after what names it.
func CheckToken(s string) error {
	if len(s) < MinToken || len(s) > MaxToken {
		return fmt.Errorf("is no token: it has %d bytes, and should have %d to %d", len(s), MinToken, MaxToken)
	}
	body := strings.TrimRight(s, "=")
	if body == "" || slices.ContainsFunc([]byte(body), func(c byte) bool { return !isAlphanumeric(c) && !strings.ContainsRune("-._~+/", rune(c)) }) {
		return errors.New("is no token: it can have letters, digits and -._~+/, and = at its end")
	}
	return nil
}
