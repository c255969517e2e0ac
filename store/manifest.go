package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"sequins/internal/content"
	"sequins/internal/names"
)

var manifestFile = fileKind{name: "manifest", version: 5, limit: maxManifest}

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

// Manifest is the plan by which a content is loaded. It lies in the content's directory, written
// once, before the first block. Which blocks there are it does not say: a block is complete if it
// exists, as it gets its name only when it is.
//
// The store gives it out as it was created, with times in UTC; what it refers to is not to be
// changed.
type Manifest struct {
	DB           string         `json:"db"`            // set by the store
	Version      string         `json:"version"`       // the name of the input
	Input        string         `json:"input"`         // the hash of the input
	Format       string         `json:"format"`        // of the source's files, as the loader names it
	Partitions   int            `json:"partitions"`    // 0 for a version without data
	Partitioner  string         `json:"partitioner"`   // by name
	Aligned      bool           `json:"aligned"`       // file i has the keys of partition i, and no others
	LastModified time.Time      `json:"last_modified"` // newest modification time among the files
	Created      time.Time      `json:"created"`       // by the store: when the version was first planned on this node
	Files        []ManifestFile `json:"-"`             // the source's files, in order

	// Fields are the fields that the records were made from, where the format has fields; otherwise nil. They are part of the input.
	Fields *Fields `json:"fields,omitempty"`
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
func (m Manifest) SourceOf(partitions int) int64 {
	var all float64
	for _, f := range m.Files {
		all += float64(f.Size)
	}
	return int64(all * float64(partitions) / float64(max(1, m.Partitions)))
}

// manifestHead is a Manifest without its files.
type manifestHead Manifest

// A manifestBody is a Manifest as it stands in its file.
type manifestBody struct {
	manifestHead
	Files []fileBody `json:"files"`
}

// A fileBody is a ManifestFile. A name that is not UTF-8, which JSON cannot have, is in base64.
type fileBody struct {
	Name       string `json:"name,omitempty"`
	NameBase64 []byte `json:"name_base64,omitempty"`
	Size       int64  `json:"size"`
	Mark       string `json:"mark"`
}

// maxCommas bounds the elements of a body before they take memory: a file has three members.
const maxCommas = 4 * maxManifestFiles

// encodeManifest returns the content of the file for m, which has to be valid.
func encodeManifest(m Manifest) ([]byte, error) {
	all := manifestBody{manifestHead: manifestHead(m.normal()), Files: make([]fileBody, len(m.Files))}
	for i, f := range m.Files {
		if all.Files[i] = (fileBody{Name: f.Name, Size: f.Size, Mark: f.Mark}); !utf8.ValidString(f.Name) {
			all.Files[i].Name, all.Files[i].NameBase64 = "", []byte(f.Name)
		}
	}
	body, err := json.Marshal(all)
	if err == nil && bytes.Count(body, []byte(",")) > maxCommas {
		err = fmt.Errorf("names with many commas: %w", ErrTooLarge)
	}
	if err != nil {
		return nil, err
	}
	return manifestFile.seal(body)
}

// decodeManifest reads the content of a manifest file; path is for its errors.
func decodeManifest(data []byte, path string) (m Manifest, err error) {
	body, err := manifestFile.body(data, path)
	if err != nil {
		return m, err
	}
	var read manifestBody
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if bytes.Count(body, []byte(",")) > maxCommas {
		err = fmt.Errorf("more than %d files", maxManifestFiles)
	} else {
		err = dec.Decode(&read) // what follows it is covered by the checksum
	}
	m = Manifest(read.manifestHead)
	for _, f := range read.Files {
		m.Files = append(m.Files, ManifestFile{Name: f.Name + string(f.NameBase64), Size: f.Size, Mark: f.Mark})
	}
	if m = m.normal(); err == nil {
		err = m.validate()
	}
	if err != nil {
		return Manifest{}, damaged(path, fmt.Errorf("not a manifest: %w", err))
	}
	return m, nil
}

// normal returns m as it is read from its file.
func (m Manifest) normal() Manifest {
	m.LastModified, m.Created = m.LastModified.UTC().Round(0), m.Created.UTC().Round(0)
	if m.Files == nil {
		m.Files = []ManifestFile{}
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
	for i, f := range m.Files {
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
