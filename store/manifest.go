package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"sequins/blocks"
	"sequins/internal/names"
)

// A manifest is one line of JSON,
//
//	{"format_version":1,"crc32c":"0123abcd","manifest":{…}}
//
// where crc32c is the CRC-32C of the bytes of the object behind "manifest", as they stand in the
// file, in 8 hexadecimal digits.
const (
	// manifestVersion history:
	//
	//	2  marks of files in place of times
	manifestVersion    = 2
	minManifestVersion = 2 // the oldest version that this code reads
)

const (
	manifestName      = "MANIFEST.json"
	maxManifest       = 64 << 20 // bytes; 100,000 files with names of 500 bytes fit
	maxManifestFiles  = 1 << 18
	maxPartitions     = 1 << 18
	maxSourceFileName = 4096
	maxMark           = 1 << 10 // bytes
	maxRefuted        = 16
	maxWord           = 64      // length of the name of a partitioner or format
	maxFieldName      = 1 << 16 // bytes, with the names of the records that the field is in
)

// ErrManifestVersion is returned for a manifest of a format version that this code does not read,
// such as one by a later release. [Store.Create] replaces it.
var ErrManifestVersion = errors.New("format version of the manifest is not supported")

// ErrTooLarge is returned for a manifest that is longer than the store reads.
var ErrTooLarge = errors.New("too large")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Manifest is the plan by which a version is loaded. It lies in the version's directory, written
// once, before the first block. Which blocks there are it does not say: a block is complete if it
// exists, as it gets its name only when it is.
//
// The store gives it out as it was created, with times in UTC; what it refers to is not to be
// changed.
type Manifest struct {
	FormatVersion int            // of the manifest; set by the store
	DB, Version   string         // set by the store
	Format        string         // of the source's files, as the loader names it
	Partitions    int            // 0 for a version without data
	Partitioner   string         // by name
	Aligned       bool           // file i has the keys of partition i, and no others
	Files         []ManifestFile // the source's files, in order
	LastModified  time.Time      // newest modification time among the files
	Created       time.Time      // when the version was first planned on this node

	// Fields are the fields that the records were made from, where the format has fields and the
	// manifest is not of an older release; otherwise nil. Format tells them apart in plans.
	Fields *Fields

	// Refuted are the partitioners that fitted the sample and were proven wrong by a record, by
	// name. They are no part of the plan: see SamePlan.
	Refuted []string
}

// Fields are the names of the fields of a source's record that were its key and its value. No Value
// is the whole record, and with PartitionColumns the columns in the names of directories.
type Fields struct {
	Key              string `json:"key"`
	Value            string `json:"value,omitempty"`
	PartitionColumns bool   `json:"partition_columns,omitempty"`
}

// ManifestFile describes a file of the source as it was when the version was planned.
type ManifestFile struct {
	Name string // relative to the version's directory in the source
	Size int64  // bytes
	Mark string // see source.File
}

// SamePlan reports whether blocks loaded by plan m are those that plan o asks for: whether they agree
// in all but times and the partitioners refuted before.
func (m Manifest) SamePlan(o Manifest) bool {
	return m.DB == o.DB && m.Version == o.Version && m.Format == o.Format && m.Partitions == o.Partitions &&
		m.Partitioner == o.Partitioner && m.Aligned == o.Aligned && slices.Equal(m.Files, o.Files)
}

// MarshalJSON implements json.Marshaler: the manifest as it stands in its file.
func (m Manifest) MarshalJSON() ([]byte, error) {
	m.FormatVersion = manifestVersion
	if err := m.validate(); err != nil {
		return nil, err
	}
	return encodeManifest(m)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Manifest) UnmarshalJSON(data []byte) (err error) {
	*m, err = decodeManifest(data, "the manifest")
	return err
}

// PlanHash returns a short hash of what decides which records a block of the plan has: the names,
// sizes and marks of the files, their format, the number of partitions, the partitioner, and whether the
// files are aligned. Blocks of the same partition by plans of one hash are replicas of each other.
// Nodes of a cluster compare theirs.
func (m Manifest) PlanHash() string {
	h := sha256.New()
	line := appendText(appendText(nil, m.Format), m.Partitioner)
	line = fmt.Appendf(line, "%d %t %d\n", m.Partitions, m.Aligned, len(m.Files))
	for _, f := range m.Files {
		h.Write(line) // which never fails
		line = appendText(append(strconv.AppendInt(appendText(line[:0], f.Name), f.Size, 10), '\n'), f.Mark)
	}
	h.Write(line)
	return hex.EncodeToString(h.Sum(nil)[:planHashBytes])
}

// appendText appends a string for PlanHash, with its length, to dst.
func appendText(dst []byte, s string) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	return append(append(append(dst, ' '), s...), '\n')
}

// planHashBytes is the length of a plan's hash. It need not withstand anybody who looks for two
// plans of the same hash: he could as well change the files.
const planHashBytes = 8

// SourceOf returns the size of the part of the files, in bytes, that some of the partitions are made from.
func (m Manifest) SourceOf(held []bool) int64 {
	var all float64
	for _, f := range m.Files {
		all += float64(f.Size)
	}
	count := 0
	for _, h := range held {
		if h {
			count++
		}
	}
	return int64(all * float64(count) / float64(max(1, m.Partitions)))
}

// manifestEnvelope is what a manifest file contains.
type manifestEnvelope struct {
	FormatVersion int             `json:"format_version"`
	CRC           string          `json:"crc32c"`
	Manifest      json.RawMessage `json:"manifest"`
}

// manifestJSON is the object behind "manifest".
type manifestJSON struct {
	DB           string        `json:"db"`
	Version      string        `json:"version"`
	Format       string        `json:"format"`
	Partitions   int           `json:"partitions"`
	Partitioner  string        `json:"partitioner"`
	Aligned      bool          `json:"aligned"`
	LastModified time.Time     `json:"last_modified"`
	Created      time.Time     `json:"created"`
	Files        manifestFiles `json:"files"`
	Fields       *Fields       `json:"fields,omitempty"`  // absent in manifests of older releases
	Refuted      []string      `json:"refuted,omitempty"` // absent in manifests of older releases
}

// manifestFileJSON is an element of "files". A name that is not UTF-8 cannot be a JSON string, so
// it is kept in base64.
type manifestFileJSON struct {
	Name      string `json:"name,omitempty"`
	NameBytes []byte `json:"name_base64,omitempty"`
	Size      int64  `json:"size"`
	Mark      string `json:"mark"`
}

// manifestFiles stops decoding when there are more than a manifest may have, before the memory for
// them is taken: 64 MiB of "{}," would become gigabytes.
type manifestFiles []manifestFileJSON

// UnmarshalJSON implements [json.Unmarshaler].
func (l *manifestFiles) UnmarshalJSON(data []byte) error {
	dec := strictDecoder(data)
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.New("files is not an array")
	}
	for dec.More() {
		if len(*l) == maxManifestFiles {
			return fmt.Errorf("more than %d files", maxManifestFiles)
		}
		var f manifestFileJSON
		if err := dec.Decode(&f); err != nil {
			return err
		}
		*l = append(*l, f)
	}
	return nil
}

func strictDecoder(data []byte) *json.Decoder {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec
}

// encodeManifest returns the content of the file for m, which has to be valid.
func encodeManifest(m Manifest) ([]byte, error) {
	j := manifestJSON{
		DB: m.DB, Version: diskName(m.Version), Format: m.Format, Partitions: m.Partitions, Partitioner: m.Partitioner,
		Aligned: m.Aligned, LastModified: m.LastModified.UTC(), Created: m.Created.UTC(),
		Files: make(manifestFiles, len(m.Files)), Fields: m.Fields, Refuted: m.Refuted,
	}
	for i, f := range m.Files {
		j.Files[i] = manifestFileJSON{Name: f.Name, Size: f.Size, Mark: f.Mark}
		if !utf8.ValidString(f.Name) {
			j.Files[i].Name, j.Files[i].NameBytes = "", []byte(f.Name)
		}
	}
	body, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(manifestEnvelope{FormatVersion: manifestVersion, CRC: manifestCRC(body), Manifest: body})
	if err != nil {
		return nil, err
	}
	if len(data) >= maxManifest {
		return nil, fmt.Errorf("manifest of %d bytes: %w", len(data), ErrTooLarge)
	}
	return append(data, '\n'), nil
}

func manifestCRC(body []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli))
}

// decodeManifest reads the content of a manifest file; path is for its errors.
func decodeManifest(data []byte, path string) (Manifest, error) {
	if m, ok := writtenManifest(data); ok {
		return m, nil
	}
	return parseManifest(data, path)
}

// parseManifest is decodeManifest for any JSON.
func parseManifest(data []byte, path string) (Manifest, error) {
	corrupt := func(reason string, err error) (Manifest, error) {
		return Manifest{}, corruptManifest(path, reason, err)
	}
	var head struct {
		FormatVersion int `json:"format_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return corrupt("not a manifest", err)
	}
	if v := head.FormatVersion; v < minManifestVersion || v > manifestVersion {
		return Manifest{}, fmt.Errorf("%s: %w: it is %d, and %d to %d can be read", path, ErrManifestVersion,
			v, minManifestVersion, manifestVersion)
	}
	var env manifestEnvelope
	if err := strictDecoder(data).Decode(&env); err != nil {
		return corrupt("not a manifest", err)
	}
	if crc := manifestCRC(env.Manifest); crc != env.CRC {
		return corrupt(fmt.Sprintf("checksum is %s, should be %q", crc, env.CRC), nil)
	}
	var j manifestJSON
	if err := strictDecoder(env.Manifest).Decode(&j); err != nil {
		return corrupt("not a manifest", err)
	}
	m := j.manifest(head.FormatVersion)
	if err := m.validate(); err != nil {
		return corrupt("invalid", err)
	}
	return m, nil
}

// manifest returns what j says.
func (j *manifestJSON) manifest(formatVersion int) Manifest {
	id, ok := versionID(j.Version)
	if !ok {
		id = "" // which validate refuses
	}
	m := Manifest{
		FormatVersion: formatVersion, DB: j.DB, Version: id, Format: j.Format, Partitions: j.Partitions,
		Partitioner: j.Partitioner, Aligned: j.Aligned, LastModified: j.LastModified.UTC(), Created: j.Created.UTC(),
		Files: make([]ManifestFile, len(j.Files)), Fields: j.Fields, Refuted: j.Refuted,
	}
	for i, f := range j.Files {
		m.Files[i] = ManifestFile{Name: f.Name, Size: f.Size, Mark: f.Mark}
		if f.Name == "" {
			m.Files[i].Name = string(f.NameBytes)
		}
	}
	return m
}

// corruptManifest makes the error for a damaged manifest, with the offset where JSON knows one.
func corruptManifest(path, reason string, err error) error {
	e := &blocks.CorruptError{Path: path, Page: -1, Reason: reason}
	if err != nil {
		e.Reason += ": " + err.Error()
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = syntax.Offset
	}
	return e
}

// validate checks everything that other code relies on.
func (m Manifest) validate() error {
	switch {
	case !names.Valid(m.DB):
		return fmt.Errorf("%q is not a name of a db", m.DB)
	case !validVersion(m.Version):
		return fmt.Errorf("%q is not a name of a version", m.Version)
	case m.Partitions < 0 || m.Partitions > maxPartitions:
		return fmt.Errorf("%d partitions", m.Partitions)
	case len(m.Files) > maxManifestFiles:
		return fmt.Errorf("%d files: %w", len(m.Files), ErrTooLarge)
	case !validWord(m.Partitioner):
		return fmt.Errorf("%q is not a name of a partitioner", m.Partitioner)
	case len(m.Refuted) > maxRefuted || !allValidWords(m.Refuted):
		return errors.New("the refuted partitioners are not a few names")
	case !validWord(m.Format):
		return fmt.Errorf("%q is not a name of a format", m.Format)
	case m.Fields != nil && !m.Fields.valid():
		return fmt.Errorf("the fields have names that are not UTF-8 or of more than %d bytes", maxFieldName)
	case !validTime(m.LastModified) || !validTime(m.Created):
		return fmt.Errorf("the files are of the year %d and the plan of the year %d: only 0 to 9999 can be written",
			m.LastModified.Year(), m.Created.Year())
	}
	names := 0
	for i, f := range m.Files {
		if names += len(f.Name); names > maxManifest {
			return fmt.Errorf("names of %d bytes and more: %w", names, ErrTooLarge)
		}
		if f.Name == "" || len(f.Name) > maxSourceFileName || f.Size < 0 || len(f.Mark) > maxMark || !utf8.ValidString(f.Mark) {
			return fmt.Errorf("file %d has a name of %d bytes, the size %d and the mark %.100q", i, len(f.Name), f.Size, f.Mark)
		}
	}
	return nil
}

func allValidWords(words []string) bool {
	return !slices.ContainsFunc(words, func(s string) bool { return s == "" || !validWord(s) })
}

func (f *Fields) valid() bool {
	return len(f.Key) <= maxFieldName && utf8.ValidString(f.Key) && len(f.Value) <= maxFieldName && utf8.ValidString(f.Value)
}

func validWord(s string) bool { return len(s) <= maxWord && utf8.ValidString(s) }

// validTime reports whether t can be written in the form of RFC 3339.
func validTime(t time.Time) bool { y := t.UTC().Year(); return 0 <= y && y <= 9999 }
