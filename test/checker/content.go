package checker

import (
	"net/http"
	"slices"
	"strings"
)

// answer compares an answer with the content of its version.
func (c *check) answer(r Read) {
	at, published := c.published[r.Version]
	switch {
	case r.Err != "":
		c.violated(wrongAnswer, r, "it is malformed")
	case !published || at > r.End:
		c.violated(wrongAnswer, r, "version %q is not published yet", r.Version)
	case r.Inside != "" && r.Inside != r.Version:
		c.violated(wrongAnswer, r, "the body names version %q", r.Inside)
	case r.Exact != "" && r.Version != r.Exact:
		c.violated(wrongAnswer, r, "version %q was asked for", r.Exact)
	case r.Version < r.AtLeast:
		c.violated(wrongAnswer, r, "version %q or a later one was asked for", r.AtLeast)
	default:
		c.contents(r)
	}
}

// contents compares an answer with the contents of its version that had been published when it came. All of it must be from one of them.
func (c *check) contents(r Read) {
	var found []Violation
	for _, name := range c.names(r.Version) {
		if at, published := c.published[name]; !published || at > r.End {
			continue
		}
		one := check{Rules: c.Rules, sorted: c.sorted}
		if one.content(r, name); len(one.found) == 0 {
			return
		}
		found = one.found
	}
	c.found = append(c.found, found...)
}

// names returns the names of the contents of a version.
func (c *check) names(version string) []string {
	if c.Contents == nil {
		return []string{version}
	}
	return c.Contents(version)
}

// content compares an answer with a content.
func (c *check) content(r Read, name string) {
	switch r.Op {
	case Batch:
		c.values(r, name)
	case Range:
		c.records(r, name)
	case Count:
		if want := len(c.within(r.Bounds, name)); r.Total != want {
			c.violated(wrongAnswer, r, "%d records, want %d", r.Total, want)
		}
	default:
		c.value(r, name)
	}
}

// value compares the answer to a Get.
func (c *check) value(r Read, name string) {
	want, exists := c.Value(r.Key, name)
	switch {
	case exists && r.Code == http.StatusNotFound:
		c.violated(wrongAnswer, r, "the key exists: %.80q", want)
	case exists && r.Body != want:
		c.violated(wrongAnswer, r, "want %.80q", want)
	case !exists && r.Code == http.StatusOK:
		c.violated(wrongAnswer, r, "the key does not exist")
	}
}

// values compares the values of r.Keys, and reports the first that is wrong.
func (c *check) values(r Read, name string) {
	if len(r.Values) != len(r.Keys) {
		c.violated(wrongAnswer, r, "%d values for %d keys", len(r.Values), len(r.Keys))
		return
	}
	for i, key := range r.Keys {
		want, exists := c.Value(key, name)
		got := r.Values[i]
		switch {
		case exists && got == nil:
			c.violated(wrongAnswer, r, "key %s is absent, want %.80q", key, want)
		case exists && *got != want:
			c.violated(wrongAnswer, r, "key %s is %.80q, want %.80q", key, *got, want)
		case !exists && got != nil:
			c.violated(wrongAnswer, r, "key %s is %.80q and does not exist", key, *got)
		default:
			continue
		}
		return
	}
}

// records compares the records of a range.
func (c *check) records(r Read, name string) {
	want := c.within(r.Bounds, name)
	more := r.Limit > 0 && len(want) > r.Limit
	if more {
		want = want[:r.Limit]
	}
	if !slices.Equal(r.Keys, want) {
		i := 0
		for i < min(len(want), len(r.Keys)) && want[i] == r.Keys[i] {
			i++
		}
		c.violated(wrongAnswer, r, "%d keys, want %d; they differ from number %d on: %q, want %q",
			len(r.Keys), len(want), i, firstOf(r.Keys[i:]), firstOf(want[i:]))
		return
	}
	if r.More != more {
		c.violated(wrongAnswer, r, "there are more records: %v; the answer says %v", more, r.More)
		return
	}
	if !r.KeysOnly {
		c.values(r, name)
	}
}

func firstOf(keys []string) string {
	if len(keys) == 0 {
		return "the end"
	}
	return keys[0]
}

// within returns the keys of a content within bounds, without regard to the limit.
func (c *check) within(b Bounds, name string) []string {
	keys, ok := c.sorted[name]
	if !ok {
		keys = c.Keys(name)
		c.sorted[name] = keys
	}
	from, _ := slices.BinarySearch(keys, max(b.From, b.Prefix))
	if b.After != "" {
		behind, _ := slices.BinarySearch(keys, b.After+"\x00")
		from = max(from, behind)
	}
	keys = keys[from:]
	end := slices.IndexFunc(keys, func(key string) bool {
		return b.Until != "" && key >= b.Until || !strings.HasPrefix(key, b.Prefix)
	})
	if end >= 0 {
		keys = keys[:end]
	}
	return keys
}
