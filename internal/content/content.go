// Package content names what nodes hold of a version. The directory of a version in the source can change, so a name is not enough:
// docs/design/CONTENT.md has the rules.
package content

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sequins/internal/names"
)

// An Input is what a version is made from. Inputs are compared for equality; only their names have an order.
type Input struct {
	Name string `json:"name"`  // of the version in the source
	Hash string `json:"input"` // of the files and the options that decide on records, of Digits hexadecimal digits; see Sum
}

// A Content is an Input with what its plan has found. Blocks of the same partition of one Content are replicas of each other.
type Content struct {
	Input
	Division string `json:"division"` // a hash of the format, the number of partitions, the partitioner and the alignment; see Sum
}

// Digits is the length of a hash. It need not withstand anybody who looks for two inputs of one hash: whoever can write one of them can write
// the other.
const Digits = 16

// Sum returns the hash of some texts.
func Sum(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d %s\n", len(t), t) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))[:Digits]
}

// Valid reports whether in has the name of a version and a hash.
func (in Input) Valid() bool { return names.Valid(in.Name) && isHash(in.Hash) }

// Valid reports whether c has a valid Input and a hash as its Division.
func (c Content) Valid() bool { return c.Input.Valid() && isHash(c.Division) }

// Code returns the hashes of c without its name, as in znodes and header fields: <input>.<division>. It is "" for the zero Content.
func (c Content) Code() string {
	if c.Hash == "" {
		return ""
	}
	return c.Hash + "." + c.Division
}

// Parse returns the Content with a name and a Code.
func Parse(name, code string) (Content, error) {
	input, division, _ := strings.Cut(code, ".")
	c := Content{Input{name, input}, division}
	if !c.Valid() {
		return Content{}, fmt.Errorf("%.100q is not a content of version %s", code, name)
	}
	return c, nil
}

func isHash(s string) bool { return len(s) == Digits && strings.Trim(s, "0123456789abcdef") == "" }
