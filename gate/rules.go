package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"time"

	"sequins/internal/human"
)

// Rules are those of one database. The zero value allows every version.
type Rules struct {
	// MinRecords is the least number of records of a version.
	MinRecords int64
	// MaxShrink and MaxGrowth limit the change of the number of records, and of the bytes of keys and values, from the
	// version that is served: as fractions of that version. 0 means no limit.
	MaxShrink, MaxGrowth float64
	// MaxMissing limits the fraction of the keys of a sample of the version that is served that the new one lacks. 0
	// means no limit.
	MaxMissing float64
	// MaxValueSize limits the size of a value, in bytes. 0 means no limit.
	MaxValueSize int64
	// ShadowReads is the number of reads of clients on each node that are compared with a version that keeps the other
	// rules, before it may be served; 0 disables that. It is served with fewer after ShadowTimeout. MaxDiffering limits the
	// fraction of them whose key only one of the versions has; 0 means no limit.
	ShadowReads   int64
	ShadowTimeout time.Duration
	MaxDiffering  float64
	// Required are keys that a version must have.
	Required []Required
}

// Required is a key that a version must have.
type Required struct {
	Key string
	// Value must match some part of the value, of which at most maxMatched bytes are read; nil matches all.
	Value *regexp.Regexp
}

// IsZero reports whether there are no rules.
func (r Rules) IsZero() bool {
	return r.MinRecords <= 0 && r.MaxShrink <= 0 && r.MaxGrowth <= 0 && r.MaxMissing <= 0 && r.MaxValueSize <= 0 && !r.shadows() && len(r.Required) == 0
}

// samples reports whether a rule needs a sample of keys.
func (r Rules) samples() bool { return r.MaxMissing > 0 }

// shadows reports whether reads of clients are compared.
func (r Rules) shadows() bool { return r.ShadowReads > 0 && r.MaxDiffering > 0 }

// Equal reports whether two sets of rules are the same.
func (r Rules) Equal(other Rules) bool {
	same := func(a, b Required) bool { return a.Key == b.Key && pattern(a.Value) == pattern(b.Value) }
	return slices.EqualFunc(r.Required, other.Required, same) && r.MinRecords == other.MinRecords && r.MaxShrink == other.MaxShrink &&
		r.MaxGrowth == other.MaxGrowth && r.MaxMissing == other.MaxMissing && r.MaxValueSize == other.MaxValueSize &&
		r.ShadowReads == other.ShadowReads && r.ShadowTimeout == other.ShadowTimeout && r.MaxDiffering == other.MaxDiffering
}

// Fingerprint returns a short hash of the rules: the same for Equal rules only.
func (r Rules) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintln(h, r.MinRecords, r.MaxShrink, r.MaxGrowth, r.MaxMissing, r.MaxValueSize, r.ShadowReads, r.ShadowTimeout, r.MaxDiffering)
	for _, k := range r.Required {
		fmt.Fprintf(h, "%q %q\n", k.Key, pattern(k.Value))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func pattern(r *regexp.Regexp) string {
	if r == nil {
		return ""
	}
	return r.String()
}

// Totals are the figures of a whole version.
type Totals struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"` // of keys and values
}

// Sample is the result of looking keys of the version that is served up in another one.
type Sample struct {
	Keys    int64 `json:"keys"`
	Missing int64 `json:"missing"` // those that the other one lacks
}

// Check is the result of one rule.
type Check struct {
	Rule   string  // the key in the configuration
	Value  float64 // in the unit of the rule
	Limit  float64
	Broken bool
	Text   string // the figures in words
}

// Comparison is what rules are applied to.
type Comparison struct {
	Version Totals
	// Served are the totals of the version that is served; nil if there is none.
	Served *Totals
	// Sample is the sum of the samples of all nodes.
	Sample Sample
	// Largest is the size of the largest value in the partitions of this node, in bytes, and Failed are those of
	// Rules.Required that the partitions of this node lack, with the reasons.
	Largest int64
	Failed  []string
	// unsampled: there is no version open to take a sample of; Served are the totals of one from before.
	unsampled bool
}

// Compare applies all rules and returns a check for each of those that apply.
func (r Rules) Compare(c Comparison) []Check {
	var checks []Check
	if r.MinRecords > 0 {
		checks = append(checks, Check{"min_records", float64(c.Version.Records), float64(r.MinRecords), c.Version.Records < r.MinRecords,
			fmt.Sprintf("%s records, at least %s", human.Count(c.Version.Records), human.Count(r.MinRecords))})
	}
	if c.Served != nil {
		checks = append(checks, r.change("records", c.Version.Records, c.Served.Records)...)
		checks = append(checks, r.change("bytes", c.Version.Bytes, c.Served.Bytes)...)
	}
	if r.MaxMissing > 0 && c.Served != nil && c.Served.Records > 0 && !c.unsampled {
		checks = append(checks, r.missing(c.Sample))
	}
	if r.MaxValueSize > 0 {
		checks = append(checks, Check{"max_value_size", float64(c.Largest), float64(r.MaxValueSize), c.Largest > r.MaxValueSize,
			fmt.Sprintf("the largest value on this node has %s, at most %s", human.Size(c.Largest), human.Size(r.MaxValueSize))})
	}
	if len(r.Required) > 0 {
		checks = append(checks, r.required(c.Failed))
	}
	return checks
}

// exactly makes up for rounding, so that a limit can be met exactly: 71 of 100 shrink by 0.29.
const exactly = 1 + 1e-9

// change compares a total with that of the version that is served.
func (r Rules) change(unit string, now, before int64) []Check {
	var checks []Check
	add := func(rule, word string, change, limit float64) {
		if limit <= 0 {
			return
		}
		broken := change*float64(before) > limit*float64(before)*exactly
		checks = append(checks, Check{rule, change, limit, broken,
			fmt.Sprintf("%s %s instead of %s, %s %s, at most %s", human.Count(now), unit, human.Count(before), percent(change), word, percent(limit))})
	}
	share := 0.0
	if before > 0 {
		share = float64(now-before) / float64(before)
	}
	add("max_shrink", "fewer", max(0, -share), r.MaxShrink)
	if before > 0 {
		add("max_growth", "more", max(0, share), r.MaxGrowth)
	}
	return checks
}

// missing judges the sample. Without a key in it, nothing is known, and the rule is broken.
func (r Rules) missing(s Sample) Check {
	c := Check{Rule: "max_missing", Limit: r.MaxMissing}
	if s.Keys == 0 {
		c.Broken, c.Value, c.Text = true, 1, "no node has partitions of both versions to compare keys"
		return c
	}
	c.Value = float64(s.Missing) / float64(s.Keys)
	c.Broken = float64(s.Missing) > r.MaxMissing*float64(s.Keys)*exactly
	c.Text = fmt.Sprintf("%s of %s keys of the version that is served are missing, %s, at most %s",
		human.Count(s.Missing), human.Count(s.Keys), percent(c.Value), percent(r.MaxMissing))
	return c
}

// differing judges the reads of clients that have been compared, if they are enough or there will be no more.
func (r Rules) differing(s Sample, over bool) Check {
	c := Check{Rule: "max_differing", Value: float64(s.Missing) / float64(max(1, s.Keys)), Limit: r.MaxDiffering}
	c.Broken = (over || s.Keys >= r.ShadowReads) && float64(s.Missing) > r.MaxDiffering*float64(s.Keys)*exactly
	c.Text = fmt.Sprintf("of %s reads on this node %s find a key in only one of the versions, %s, at most %s",
		human.Count(s.Keys), human.Count(s.Missing), percent(c.Value), percent(r.MaxDiffering))
	return c
}

func (r Rules) required(failed []string) Check {
	c := Check{Rule: "required_keys", Value: float64(len(failed)), Broken: len(failed) > 0, Text: fmt.Sprintf("all of %s on this node are right", human.Plural(len(r.Required), "key"))}
	if c.Broken {
		c.Text = list(failed)
	}
	return c
}

// maxListed is how many required keys a text names.
const maxListed = 5

func list(failed []string) string {
	text := ""
	for i, f := range failed[:min(len(failed), maxListed)] {
		if i > 0 {
			text += "; "
		}
		text += f
	}
	if more := len(failed) - maxListed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
