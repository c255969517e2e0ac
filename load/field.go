package load

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

var (
	// missingKey matches an error about a key that records lack, and the first of the fields that they have.
	missingKey = regexp.MustCompile(`key(?: is not set|: there is no field .*); the fields are (.+?)(?:,| and \d+ more|$)`)
	bareKey    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`) // of TOML
)

// ExplainKey adds to an error about a key that the records of a database lack what to write into the configuration.
func ExplainKey(err error, db string) error {
	if !errors.Is(err, ErrField) {
		return err
	}
	first := missingKey.FindStringSubmatch(err.Error())
	if first == nil {
		return err
	}
	if !bareKey.MatchString(db) {
		db = strconv.Quote(db)
	}
	return fmt.Errorf("%w; choose one, such as [db.%s] key = %q", err, db, first[1])
}
