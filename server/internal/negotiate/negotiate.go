// Package negotiate evaluates the header fields that list what a client accepts, with weights: Accept and Accept-Encoding
// (RFC 9110, section 12.5). A malformed item of a list is ignored, and the others count.
package negotiate

import (
	"iter"
	"strconv"
	"strings"
)

// items returns the items of a list: their names and weights. Other parameters than q are ignored, so that
// "application/json; charset=utf-8" means application/json.
func items(list string) iter.Seq2[string, float64] {
	return func(yield func(name string, weight float64) bool) {
		for item := range strings.SplitSeq(list, ",") {
			name, params, _ := strings.Cut(item, ";")
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if weight, ok := weightOf(params); ok && !yield(name, weight) {
				return
			}
		}
	}
}

// weightOf returns the weight among the parameters of an item.
func weightOf(params string) (weight float64, ok bool) {
	weight, ok = 1, true
	for param := range strings.SplitSeq(params, ";") {
		if name, value, _ := strings.Cut(param, "="); ok && strings.EqualFold(strings.TrimSpace(name), "q") {
			var err error
			weight, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
			ok = err == nil && weight >= 0 && weight <= 1
		}
	}
	return weight, ok
}

// How specific the range is that a media type matches.
const (
	unnamed  = iota
	anyType  // */*
	subtypes // text/*
	exactly  // text/html
)

// opinion is what a client says about a media type.
type opinion struct {
	weight   float64
	specific int
}

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
// gives several the same weight. It is "" for none. accepts is the Accept-Encoding field, joined by commas if it is repeated.
func Coding(accepts string, offered ...string) (coding string) {
	const absent = -1.0
	weights, others, identity := make([]float64, len(offered)), absent, absent
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
	best := max(identity, 0.001)
	for i, w := range weights {
		if w == absent {
			w = others
		}
		if w > best || w == best && coding == "" {
			coding, best = offered[i], w
		}
	}
	return coding
}
