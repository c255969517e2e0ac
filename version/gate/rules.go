package gate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sequins/internal/content"
	"sequins/internal/human"
	"sequins/observe/status"
	"sequins/store"
)

// Rules are those of one database. The zero value allows every content.
type Rules struct {
	// MinRecords is the least number of records of a version.
	MinRecords int64
	// MaxShrink and MaxGrowth limit the change of the number of records, and of the bytes of keys and values, from the version that is served: as
	// fractions of that version. 0 means no limit.
	MaxShrink, MaxGrowth float64
	// MaxMissing limits the fraction of the keys of a sample of the version that is served that the new one lacks. 0 means no limit.
	MaxMissing float64
	// MaxValueSize limits the size of a value, in bytes. 0 means no limit.
	MaxValueSize int64
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
	return r.MinRecords <= 0 && r.MaxShrink <= 0 && r.MaxGrowth <= 0 && r.MaxMissing <= 0 && r.MaxValueSize <= 0 && len(r.Required) == 0
}

// compare reports whether a rule compares with what is served.
func (r Rules) compare() bool { return r.MaxShrink > 0 || r.MaxGrowth > 0 || r.MaxMissing > 0 }

// Fingerprint returns a short hash of the rules, the same for the same rules only; "" if there are none.
func (r Rules) Fingerprint() string {
	if r.IsZero() {
		return ""
	}
	text, _ := json.Marshal(r) // it consists of numbers, texts and patterns
	return content.Sum(string(text))
}

// ofBlocks applies the rules of blocks: to the largest value that is known, and to the required keys if own is current.
func (r Rules) ofBlocks(largest int64, own *Measures, current bool) (checks []status.GateCheck) {
	if r.MaxValueSize > 0 {
		checks = append(checks, status.GateCheck{Rule: "max_value_size", Value: float64(largest), Limit: float64(r.MaxValueSize), Broken: largest > r.MaxValueSize,
			Text: fmt.Sprintf("the largest value has %s bytes, at most %s", human.Count(largest), human.Count(r.MaxValueSize))})
	}
	if len(r.Required) > 0 && current {
		failed := len(own.Failed)
		c := status.GateCheck{Rule: "required_keys", Value: float64(failed), Broken: failed > 0, Text: human.Some(own.Failed)}
		if !c.Broken {
			c.Text = fmt.Sprintf("all of %s on this node are right", human.Plural(len(r.Required), "key"))
		}
		checks = append(checks, c)
	}
	return checks
}

// ofContent applies the other rules to the totals of a content; served are those of the content to compare with, nil for none, of which s is the sum
// of the samples of all nodes.
func (r Rules) ofContent(t Figures, served *store.Totals, s Sample) (checks []status.GateCheck) {
	if r.MinRecords > 0 {
		checks = append(checks, status.GateCheck{Rule: "min_records", Value: float64(t.Records), Limit: float64(r.MinRecords), Broken: t.Records < r.MinRecords,
			Text: fmt.Sprintf("%s records, at least %s", human.Count(t.Records), human.Count(r.MinRecords))})
	}
	if served == nil {
		return checks
	}
	checks = append(checks, r.change("records", t.Records, served.Records)...)
	checks = append(checks, r.change("bytes", t.Bytes, served.Bytes)...)
	if r.MaxMissing > 0 && served.Records > 0 {
		checks = append(checks, r.missing(s))
	}
	return checks
}

// broken names the broken rules; "" if none is.
func broken(checks []status.GateCheck) string {
	var texts []string
	for _, c := range checks {
		if c.Broken {
			texts = append(texts, c.Rule+": "+c.Text)
		}
	}
	return strings.Join(texts, "; ")
}

// exactly makes up for rounding, so that a limit can be met exactly: 71 of 100 shrink by 0.29.
const exactly = 1 + 1e-9

// change compares a total with that of the version that is served.
func (r Rules) change(unit string, now, before int64) (checks []status.GateCheck) {
	add := func(rule, word string, more, limit float64) {
		if limit <= 0 || before == 0 {
			return
		}
		more = max(0, more)
		share := more / float64(before)
		checks = append(checks, status.GateCheck{Rule: rule, Value: share, Limit: limit, Broken: more > limit*float64(before)*exactly,
			Text: fmt.Sprintf("%s %s instead of %s, %s %s, at most %s", human.Count(now), unit, human.Count(before), percent(share), word, percent(limit))})
	}
	add("max_shrink", "fewer", float64(before-now), r.MaxShrink)
	add("max_growth", "more", float64(now-before), r.MaxGrowth)
	return checks
}

// missing judges the sample. Without a key in it, nothing is known, and the rule is broken.
func (r Rules) missing(s Sample) status.GateCheck {
	c := status.GateCheck{Rule: "max_missing", Limit: r.MaxMissing}
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

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
