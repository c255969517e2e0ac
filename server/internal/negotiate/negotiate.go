// Package negotiate evaluates the header fields that list what a client accepts, with weights: Accept and Accept-Encoding
// (RFC 9110, section 12.5). A malformed item of a list is ignored, and the others count.
package negotiate

import (
	"iter"
	"strings"
)

// full is the weight 1, in thousandths.
const full = 1000

// items returns the items of a list: their names and weights. Other parameters than q are ignored, so that
// "application/json; charset=utf-8" means application/json.
func items(list string) iter.Seq2[string, int] {
	return func(yield func(name string, weight int) bool) {
		for len(list) > 0 {
			var item string
			item, list = cut(list, ',')
			name, params := cut(item, ';')
			if name = trim(name); name == "" {
				continue
			}
			if weight, ok := weightOf(params); ok && !yield(name, weight) {
				return
			}
		}
	}
}

// cut is strings.Cut at a separator that is not within a quoted string.
func cut(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == separator:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func trim(s string) string { return strings.Trim(s, " \t") }

// weightOf returns the weight among the parameters of an item.
func weightOf(params string) (weight int, ok bool) {
	weight, ok = full, true
	for len(params) > 0 && ok {
		var param string
		param, params = cut(params, ';')
		if name, value, _ := strings.Cut(param, "="); strings.EqualFold(trim(name), "q") {
			weight, ok = parseWeight(trim(value))
		}
	}
	return weight, ok
}

// parseWeight parses a number from 0 to 1 into thousandths. Further digits are cut off.
func parseWeight(s string) (weight int, ok bool) {
	whole, fraction, dot := strings.Cut(s, ".")
	if whole != "0" && whole != "1" && (whole != "" || fraction == "") {
		return 0, false
	}
	if whole == "1" {
		weight = full
	}
	digit := full / 10
	for _, c := range []byte(fraction) {
		if c < '0' || c > '9' {
			return 0, false
		}
		weight += int(c-'0') * digit
		digit /= 10
	}
	return weight, weight <= full && (dot || fraction == "")
}

// How specific the range is that a media type matches.
const (
	unnamed  = iota
	anyType  // */*
	subtypes // text/*
	exactly  // text/html
)

// opinion is what a client says about a media type.
type opinion struct{ weight, specific int }

// opinionOn returns the weight of the most specific range of an Accept field that a media type matches.
func opinionOn(accept, media string) (o opinion) {
	kind, _, _ := strings.Cut(media, "/")
	for name, weight := range items(accept) {
		specific := unnamed
		switch {
		case strings.EqualFold(name, media):
			specific = exactly
		case len(name) == len(kind)+2 && strings.EqualFold(name[:len(kind)], kind) && name[len(kind):] == "/*":
			specific = subtypes
		case name == "*/*":
			specific = anyType
		}
		if specific > o.specific || specific == o.specific && specific > unnamed && weight > o.weight {
			o = opinion{weight, specific}
		}
	}
	return o
}

// Media returns the media type that a client prefers. Of equal weights, that which the client names counts more than one
// that is in a wildcard only, and one of others more than the default if the client names both. The default is also the
// answer to a client that accepts none of them. accept is the Accept field, joined by commas if it is repeated.
func Media(accept, byDefault string, others ...string) string {
	best, its := byDefault, opinionOn(accept, byDefault)
	for _, media := range others {
		o := opinionOn(accept, media)
		better := o.weight > its.weight || o.weight == its.weight && o.specific > its.specific
		if o.weight > 0 && (better || best == byDefault && o == its && o.specific == exactly) {
			best, its = media, o
		}
	}
	return best
}

// Coding returns the content coding that a client prefers of those offered, of which the first are preferred if the client
// gives several the same weight. It is "" for none. forced reports that the client does not accept an answer without a coding.
// accepts is the Accept-Encoding field, joined by commas if it is repeated.
func Coding(accepts string, offered ...string) (coding string, forced bool) {
	const absent = -1
	weights, others, identity := make([]int, len(offered)), absent, absent
	for i := range weights {
		weights[i] = absent
	}
	for name, weight := range items(accepts) {
		switch {
		case name == "*":
			others = max(others, weight)
		case strings.EqualFold(name, "identity"):
			identity = max(identity, weight)
		}
		for i, o := range offered {
			if strings.EqualFold(name, o) || o == "gzip" && strings.EqualFold(name, "x-gzip") {
				weights[i] = max(weights[i], weight)
			}
		}
	}
	if identity == absent {
		identity = others
	}
	best := max(identity, 1)
	for i, w := range weights {
		if w == absent {
			w = others
		}
		if w > best || w == best && coding == "" {
			coding, best = offered[i], w
		}
	}
	return coding, coding != "" && identity == 0
}
