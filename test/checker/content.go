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
	case r.Op == Batch:
		c.values(r)
	case r.Op == Range:
		c.records(r)
	case r.Op == Count:
		if want := len(c.within(r.Bounds, r.Version)); r.Total != want {
			c.violated(wrongAnswer, r, "%d records, want %d", r.Total, want)
		}
	default:
		c.value(r)
	}
}

// value compares the answer to a Get.
func (c *check) value(r Read) {
	want, exists := c.Value(r.Key, r.Version)
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
func (c *check) values(r Read) {
	if len(r.Values) != len(r.Keys) {
		c.violated(wrongAnswer, r, "%d values for %d keys", len(r.Values), len(r.Keys))
		return
	}
	for i, key := range r.Keys {
		want, exists := c.Value(key, r.Version)
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
func (c *check) records(r Read) {
	want := c.within(r.Bounds, r.Version)
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
		c.values(r)
	}
}

func firstOf(keys []string) string {
	if len(keys) == 0 {
		return "the end"
	}
	return keys[0]
}

// within returns the keys of a version within bounds, without regard to the limit.
func (c *check) within(b Bounds, version string) []string {
	keys, ok := c.sorted[version]
	if !ok {
		keys = c.Keys(version)
		c.sorted[version] = keys
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
