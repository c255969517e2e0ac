package gate

import (
	"fmt"
	"strings"

	"sequins/internal/human"
	"sequins/observe/status"
	"sequins/store"
	"sequins/version/report"
)

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
func (r Rules) ofContent(t report.Figures, served *store.Totals, s report.Sample) (checks []status.GateCheck) {
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
func (r Rules) missing(s report.Sample) status.GateCheck {
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
