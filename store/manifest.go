package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sequins/internal/content"
	"sequins/internal/names"
)

var manifestFile = fileKind{name: "manifest", version: 4, limit: maxManifest}

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

// manifestHead is a Manifest without its files. The body of the file is such an object, with the files as its last member:
//
//	{"db":"names",…,"files":[{"name":"part-r-00000","size":100,"mark":"17"},{"name_base64":"cGFydC3/","size":0,"mark":""}]}
//
// A name or mark that JSON cannot have as it is, is in base64.
type manifestHead Manifest

const filesMember = `,"files":[`

// encodeManifest returns the content of the file for m, which has to be valid.
func encodeManifest(m Manifest) ([]byte, error) {
	body, err := json.Marshal(manifestHead(m.normal()))
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], filesMember...)
	for i, f := range m.Files {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendText(append(body, '{'), "name", f.Name)
		body = fmt.Appendf(body, `,"size":%d,`, f.Size)
		body = append(appendText(body, "mark", f.Mark), '}')
	}
	return manifestFile.seal(append(body, "]}"...))
}

// appendText appends a member of an object, in base64 unless it is plain.
func appendText(b []byte, name, text string) []byte {
	escaped := func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) }
	if strings.ContainsFunc(text, escaped) {
		name, text = name+"_base64", base64.StdEncoding.EncodeToString([]byte(text))
	}
	return fmt.Appendf(b, `"%s":"%s"`, name, text)
}

// decodeManifest reads the content of a manifest file; path is for its errors.
func decodeManifest(data []byte, path string) (Manifest, error) {
	body, err := manifestFile.body(data, path)
	if err != nil {
		return Manifest{}, err
	}
	head, files, _ := bytes.Cut(body, []byte(filesMember)) // no string in JSON contains it
	var read manifestHead
	dec := json.NewDecoder(io.MultiReader(bytes.NewReader(head), strings.NewReader("}")))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&read); err == nil {
		read.Files, err = decodeFiles(files)
	}
	m := Manifest(read).normal()
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return Manifest{}, damaged(path, fmt.Errorf("not a manifest: %w", err))
	}
	return m, nil
}

// decodeFiles reads the elements of "files", and the ends of the array and of the manifest.
func decodeFiles(data []byte) ([]ManifestFile, error) {
	data, whole := bytes.CutSuffix(data, []byte("]}"))
	if !whole {
		return nil, errors.New("it ends without its files")
	}
	dec := json.NewDecoder(io.MultiReader(strings.NewReader("["), bytes.NewReader(data), strings.NewReader("]")))
	dec.DisallowUnknownFields()
	_, err := dec.Token()
	files := []ManifestFile{}
	for err == nil && dec.More() {
		if len(files) == maxManifestFiles {
			return nil, fmt.Errorf("more than %d files", maxManifestFiles)
		}
		var f struct {
			Name       string `json:"name"`
			NameBase64 []byte `json:"name_base64"`
			Size       int64  `json:"size"`
			Mark       string `json:"mark"`
			MarkBase64 []byte `json:"mark_base64"`
		}
		if err := dec.Decode(&f); err != nil {
			return nil, fmt.Errorf("file %d cannot be read: %w", len(files), err)
		}
		files = append(files, ManifestFile{Name: f.Name + string(f.NameBase64), Size: f.Size, Mark: f.Mark + string(f.MarkBase64)})
	}
	if _, err = dec.Token(); err == nil {
		_, err = dec.Token()
	}
	if err != io.EOF {
		return nil, errors.New("there is more behind its files")
	}
	return files, nil
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
