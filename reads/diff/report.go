package diff

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// Op is how a key differs.
type Op string

// The ops. A key is changed if it has another value.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Key is a key in JSON: a string, or {"base64": "…"} if it is not UTF-8.
type Key []byte

type coded struct {
	Base64 string `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (k Key) MarshalJSON() ([]byte, error) {
	if utf8.Valid(k) {
		return json.Marshal(string(k))
	}
	return json.Marshal(coded{base64.StdEncoding.EncodeToString(k)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (k *Key) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*k = Key(text)
		return nil
	}
	var c coded
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(c.Base64)
	*k = b
	return err
}

// Difference is a line of the full list.
type Difference struct {
	Op  Op  `json:"op"`
	Key Key `json:"key"`
}

// Counts are the differences of a partition, or of a version.
type Counts struct {
	OldRecords int64 `json:"old_records"`
	NewRecords int64 `json:"new_records"`
	Added      int64 `json:"added"` // keys
	Removed    int64 `json:"removed"`
	Changed    int64 `json:"changed"`
	// AddedBytes and RemovedBytes are those of the keys and values of added and removed keys, and of the values of
	// changed ones.
	AddedBytes   int64 `json:"added_bytes"`
	RemovedBytes int64 `json:"removed_bytes"`
}

func (c *Counts) add(d Counts) {
	c.OldRecords += d.OldRecords
	c.NewRecords += d.NewRecords
	c.Added += d.Added
	c.Removed += d.Removed
	c.Changed += d.Changed
	c.AddedBytes += d.AddedBytes
	c.RemovedBytes += d.RemovedBytes
}

// Equal reports whether there are no differences.
func (c *Counts) Equal() bool { return c.Added+c.Removed+c.Changed == 0 }

// Row is the result for one partition.
type Row struct {
	// Partition is -1 for all of a version, if the versions are partitioned differently.
	Partition int `json:"partition"`
	Counts
}

// Report is the result of a comparison.
type Report struct {
	DB  string `json:"db"`
	Old string `json:"old"`
	New string `json:"new"`
	Counts
	// Compared is the number of partitions that were compared; 1 if the versions are partitioned differently.
	Compared int `json:"compared"`
	// Partitions are those that differ, ascending.
	Partitions []Row `json:"partitions"`
	// Unknown are partitions of which no node that answers has one of the versions.
	Unknown []int `json:"unknown,omitempty"`
}

// add adds the result of a partition.
func (r *Report) add(row Row) {
	r.Compared++
	r.Counts.add(row.Counts)
	if !row.Equal() {
		r.Partitions = append(r.Partitions, row)
	}
}

// line is a line of the answer as NDJSON: one of its members is set.
type line struct {
	*Difference
	Progress *Progress `json:"progress,omitempty"`
	Report   *Report   `json:"report,omitempty"` // the last line
	Error    string    `json:"error,omitempty"`  // the last line
}

// Progress tells how many partitions are done.
type Progress struct {
	Done int `json:"done"`
	Of   int `json:"of"`
}
