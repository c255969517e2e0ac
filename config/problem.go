package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sequins/internal/term"
)

// A Problem is an error of one key.
type Problem struct {
	File   string // the file, flag or variable that set the key; empty if none did
	Line   int    // in File, from 1; 0 if unknown
	Key    string // dotted: sharding.replication; empty if the problem is the file itself
	Reason string
}

// Error returns the problem as one line, such as "sequins.conf:3: bind: no port in "localhost"".
func (p *Problem) Error() string {
	place := p.File
	if place != "" && p.Line > 0 {
		place += ":" + strconv.Itoa(p.Line)
	}
	parts := slices.DeleteFunc([]string{place, p.Key}, func(part string) bool { return part == "" })
	line := term.Clean(strings.Join(append(parts, p.Reason), ": "))
	if len(line) > maxLine {
		return strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}

// maxLine limits the description of a problem, in bytes.
const maxLine = 1000

// maxReported limits the number of reported problems.
const maxReported = 50

// joined returns the problems of a configuration as one error, in the order of the file, one line each, up to fifty.
func joined(ps []*Problem) error {
	sortProblems(ps)
	var errs []error
	for _, p := range ps[:min(len(ps), maxReported)] {
		errs = append(errs, p)
	}
	if more := len(ps) - maxReported; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

func sortProblems(ps []*Problem) {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
}
