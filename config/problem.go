package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Problem is an error of one key.
type Problem struct {
	File   string `json:"file,omitempty"` // the file, flag or variable that set the key; empty if none did
	Line   int    `json:"line,omitempty"` // in File, from 1; 0 if unknown
	Key    string `json:"key,omitempty"`  // dotted: sharding.replication; empty if the problem is the file itself
	Reason string `json:"reason"`
}

// Error returns the problem as one line, such as "sequins.conf:3: bind: no port in "localhost"".
func (p *Problem) Error() string {
	var parts []string
	switch {
	case p.File != "" && p.Line > 0:
		parts = append(parts, p.File+":"+strconv.Itoa(p.Line))
	case p.File != "":
		parts = append(parts, p.File)
	}
	if p.Key != "" {
		parts = append(parts, p.Key)
	}
	line := oneLine(strings.Join(append(parts, p.Reason), ": "))
	if len(line) > maxLine {
		return strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}

// maxLine limits the description of a problem, in bytes.
const maxLine = 1000

// oneLine escapes line ends and control characters in text of the file.
func oneLine(s string) string {
	clean := func(r rune) bool { return !strconv.IsPrint(r) }
	if strings.IndexFunc(s, clean) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// A Warning is a Problem that does not keep sequins from starting.
type Warning = Problem

// Problems are all problems of a configuration, in the order of the file.
type Problems []*Problem

// maxReported limits the number of reported problems.
const maxReported = 50

// Error returns one line per problem, up to fifty.
func (ps Problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps[:min(len(ps), maxReported)] {
		lines = append(lines, p.Error())
	}
	if more := len(ps) - maxReported; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a *Problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func sortProblems(ps []*Problem) {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
}
