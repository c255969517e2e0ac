package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"sequins/internal/content"
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
	//	3  the input, and no refuted partitioners
	manifestVersion    = 3
	minManifestVersion = 3 // the oldest version that this code reads
)

const (
	manifestName      = "MANIFEST.json"
	maxManifest       = 64 << 20 // bytes; 100,000 files with names of 500 bytes fit
	maxManifestFiles  = 1 << 18
	maxPartitions     = 1 << 18
	maxSourceFileName = 4096
	maxMark           = 1 << 10 // bytes
	maxWord           = 64      // length of the name of a partitioner or format
	maxFieldName      = 1 << 16 // bytes, with the names of the records that the field is in
)

// ErrManifestVersion is returned for a manifest of a format version that this code does not read,
// such as one by a later release. [Store.Create] replaces it.
var ErrManifestVersion = errors.New("format version of the manifest is not supported")

// ErrTooLarge is returned for a manifest that is longer than the store reads.
var ErrTooLarge = errors.New("too large")

// Manifest is the plan by which a content is loaded. It lies in the content's directory, written
// once, before the first block. Which blocks there are it does not say: a block is complete if it
// exists, as it gets its name only when it is.
//
// The store gives it out as it was created, with times in UTC; what it refers to is not to be
// changed.
type Manifest struct {
	FormatVersion int            // of the manifest; set by the store
	DB            string         // set by the store
	Version       string         // the name of the input
	Input         string         // the hash of the input
	Format        string         // of the source's files, as the loader names it
	Partitions    int            // 0 for a version without data
	Partitioner   string         // by name
	Aligned       bool           // file i has the keys of partition i, and no others
	Files         []ManifestFile // the source's files, in order
	LastModified  time.Time      // newest modification time among the files
	Created       time.Time      // when the version was first planned on this node

	// Fields are the fields that the records were made from, where the format has fields; otherwise nil. They are part of the input.
	Fields *Fields
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

// Content returns what is loaded by m.
func (m Manifest) Content() content.Content {
	division := content.Sum(m.Format, strconv.Itoa(m.Partitions), m.Partitioner, strconv.FormatBool(m.Aligned))
	return content.Content{Input: content.Input{Name: m.Version, Hash: m.Input}, Division: division}
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
	Input        string        `json:"input"`
	Format       string        `json:"format"`
	Partitions   int           `json:"partitions"`
	Partitioner  string        `json:"partitioner"`
	Aligned      bool          `json:"aligned"`
	LastModified time.Time     `json:"last_modified"`
	Created      time.Time     `json:"created"`
	Files        manifestFiles `json:"files"`
	Fields       *Fields       `json:"fields,omitempty"`
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
		DB: m.DB, Version: m.Version, Input: m.Input, Format: m.Format, Partitions: m.Partitions, Partitioner: m.Partitioner, Aligned: m.Aligned,
		LastModified: m.LastModified.UTC(), Created: m.Created.UTC(),
		Files: make(manifestFiles, len(m.Files)), Fields: m.Fields,
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
	data, err := json.Marshal(manifestEnvelope{FormatVersion: manifestVersion, CRC: checksum(body), Manifest: body})
	if err != nil {
		return nil, err
	}
	if len(data) >= maxManifest {
		return nil, fmt.Errorf("manifest of %d bytes: %w", len(data), ErrTooLarge)
	}
	return append(data, '\n'), nil
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
		return Manifest{}, corruptFile(path, reason, err)
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
	if crc := checksum(env.Manifest); crc != env.CRC {
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
	m := Manifest{
		FormatVersion: formatVersion, DB: j.DB, Version: j.Version, Input: j.Input, Format: j.Format, Partitions: j.Partitions,
		Partitioner: j.Partitioner, Aligned: j.Aligned, LastModified: j.LastModified.UTC(), Created: j.Created.UTC(),
		Files: make([]ManifestFile, len(j.Files)), Fields: j.Fields,
	}
	for i, f := range j.Files {
		m.Files[i] = ManifestFile{Name: f.Name, Size: f.Size, Mark: f.Mark}
		if f.Name == "" {
			m.Files[i].Name = string(f.NameBytes)
		}
	}
	return m
}

// validate checks everything that other code relies on.
func (m Manifest) validate() error {
	switch {
	case !names.Valid(m.DB):
		return fmt.Errorf("%q is not a name of a db", m.DB)
	case !m.Content().Input.Valid():
		return fmt.Errorf("version %q with the hash %.100q is not an input", m.Version, m.Input)
	case m.Partitions < 0 || m.Partitions > maxPartitions:
		return fmt.Errorf("%d partitions", m.Partitions)
	case len(m.Files) > maxManifestFiles:
		return fmt.Errorf("%d files: %w", len(m.Files), ErrTooLarge)
	case !validWord(m.Partitioner):
		return fmt.Errorf("%q is not a name of a partitioner", m.Partitioner)
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

func (f *Fields) valid() bool {
	return len(f.Key) <= maxFieldName && utf8.ValidString(f.Key) && len(f.Value) <= maxFieldName && utf8.ValidString(f.Value)
}

func validWord(s string) bool { return len(s) <= maxWord && utf8.ValidString(s) }

// validTime reports whether t can be written in the form of RFC 3339.
func validTime(t time.Time) bool { y := t.UTC().Year(); return 0 <= y && y <= 9999 }
