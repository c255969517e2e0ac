package gate

import (
	"encoding/json"
	"regexp"

	"sequins/internal/content"
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
