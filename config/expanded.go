package config

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expansions are the values in which references to variables were replaced. What variables contain may be secret, and everybody
// who sees the status sees problems: they show the references instead.
type expansions struct {
	of        map[string][]expansion // by folded key
	variables map[string]string      // value → name
}

// expansion is a value as it is in the file, and with its references replaced.
type expansion struct{ written, value string }

// leastHidden is the length from which the value of a variable is hidden in problems of other keys, too, in bytes. Shorter ones
// are part of many words.
const leastHidden = 4

func (x *expansions) add(key, written, value string) {
	if x.of == nil {
		x.of = make(map[string][]expansion)
	}
	x.of[folded(key)] = append(x.of[folded(key)], expansion{written, value})
}

func (x *expansions) used(name, value string) {
	if x.variables == nil {
		x.variables = make(map[string]string)
	}
	x.variables[value] = name
}

// reason formats a problem of a key. Arguments that show values of variables are replaced.
func (x *expansions) reason(key, format string, args []any) string {
	if len(x.of) == 0 {
		return fmt.Sprintf(format, args...)
	}
	shown := slices.Clone(args)
	for i, arg := range args {
		text := fmt.Sprint(arg)
		if hidden := x.hide(key, arg, text); hidden != text {
			shown[i] = verbatim(hidden)
		}
	}
	return fmt.Sprintf(format, shown...)
}

// hide returns the text of an argument without values of variables.
func (x *expansions) hide(key string, arg any, text string) string {
	own := x.of[folded(key)]
	switch arg.(type) {
	case derived:
		if len(own) > 0 {
			return "…"
		}
		return text
	case string:
		if written, ok := partOf(own, text); ok {
			return written
		}
	case error:
		text = quoted.ReplaceAllStringFunc(text, func(found string) string {
			part, err := strconv.Unquote(found)
			if written, ok := partOf(own, part); ok && err == nil {
				return strconv.Quote(written)
			}
			return found
		})
	default:
		for _, e := range own {
			if e.value == text {
				return e.written
			}
		}
		return text
	}
	return x.replacer().Replace(text)
}

// quoted matches what errors quote.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")

// partOf returns the value of which a text is a part, as it is written in the file. Case is ignored: checks change it.
func partOf(values []expansion, text string) (written string, ok bool) {
	for _, e := range values {
		if text != "" && strings.Contains(strings.ToLower(e.value), strings.ToLower(text)) {
			return e.written, true
		}
	}
	return "", false
}

// replacer returns what replaces the values of variables by references, the longest first.
func (x *expansions) replacer() *strings.Replacer {
	values := slices.SortedFunc(maps.Keys(x.variables), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, value := range values {
		if len(value) >= leastHidden {
			reference := "${" + x.variables[value] + "}"
			pairs = append(pairs, value, reference, strings.ToLower(value), reference)
		}
	}
	return strings.NewReplacer(pairs...)
}

// derived is an argument of a problem that is computed from the value of its key.
type derived string

// verbatim is a text in the place of an argument of any type.
type verbatim string

// Format implements fmt.Formatter.
func (v verbatim) Format(f fmt.State, verb rune) {
	text := string(v)
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text) // never fails
}
