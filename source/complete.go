package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// SuccessFile is the name of the marker that a job writes when it has finished.
const SuccessFile = "_SUCCESS"

const (
	// maxMarkers bounds the bytes of markers read per version. Hadoop's
	// committers list at most 100 files, and BlocksFile has at most 32 MiB.
	maxMarkers = 34 << 20
	// maxListed bounds the number of elements in a marker's JSON.
	maxListed = 1 << 20
	// manifestLimit is the maximum number of files that Hadoop's committers list
	// (SUCCESS_MARKER_FILE_LIMIT).
	manifestLimit = 100
)

// markers reads and applies the markers of one version.
type markers struct {
	src         Source
	db, version string
	budget      int64           // remaining bytes to read
	have        map[string]bool // files, also hidden ones
	unread      map[string]bool // directories
}

func newMarkers(src Source, db, version string, c *Contents) *markers {
	m := &markers{src: src, db: db, version: version, budget: maxMarkers, have: make(map[string]bool, len(c.Files)), unread: map[string]bool{}}
	for _, f := range c.Files {
		m.have[f.Name] = true
	}
	for _, f := range c.Hidden {
		m.have[f.Name] = !f.Dir
	}
	for _, name := range c.Indexes {
		m.have[name] = true
	}
	for _, name := range c.Dirs {
		m.unread[name] = true
	}
	return m
}

// read reads a marker. ok is false if it does not exist any more.
func (m *markers) read(ctx context.Context, marker Marker) (b []byte, ok bool, err error) {
	if marker.Dir {
		return nil, false, Fault(fmt.Errorf("%s of %s is a directory", marker.Name, m.src.Path(m.db, m.version)))
	}
	f, err := m.src.Open(ctx, m.db, m.version, File{Name: marker.Name}, ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("opening %s: %w", marker.Name, err)
	}
	defer f.Close()
	b, err = io.ReadAll(io.LimitReader(f, m.budget+1))
	if err != nil {
		return nil, false, fmt.Errorf("reading %s of %s: %w", marker.Name, m.src.Path(m.db, m.version), err)
	}
	if int64(len(b)) > m.budget {
		return nil, false, Fault(fmt.Errorf("%s of %s: markers of more than %d bytes", marker.Name, m.src.Path(m.db, m.version), maxMarkers))
	}
	if bytes.Count(b, []byte(",")) > maxListed {
		return nil, false, Fault(fmt.Errorf("%s of %s lists more than %d files", marker.Name, m.src.Path(m.db, m.version), maxListed))
	}
	m.budget -= int64(len(b))
	return b, true, nil
}

// success applies _SUCCESS.
func (m *markers) success(ctx context.Context, c *Contents, l *Listing) error {
	i := c.index(SuccessFile)
	if i < 0 {
		return nil
	}
	b, ok, err := m.read(ctx, c.Hidden[i])
	if err != nil {
		return err
	}
	if !ok {
		l.Incomplete = SuccessFile + " has just been removed"
		return nil
	}
	var mf manifest
	if mf, l.Incomplete = parseManifest(b); l.Incomplete != "" {
		return nil
	}
	return m.applyManifest(mf, l)
}

// manifest is the list of files in _SUCCESS, in the format of Hadoop's
// ManifestSuccessData and S3A's SuccessData.
//
// The list may be incomplete: committers list at most the first 100 files.
// Unlisted files are left out only if the list is known to be complete: by the
// number of files in the job's statistics or, without these, because it has fewer
// than 100 entries. A list without data files leaves nothing out.
type manifest struct {
	files []string
	whole bool
}

// parseManifest returns an empty manifest if the marker contains none. reason is
// why the version is incomplete, or "".
func parseManifest(b []byte) (m manifest, reason string) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return m, ""
	}
	var marker struct {
		Success      *bool           `json:"success"`
		Filenames    []string        `json:"filenames"`
		Metrics      json.RawMessage `json:"metrics"`
		IOStatistics json.RawMessage `json:"iostatistics"`
	}
	err := json.Unmarshal(b, &marker)
	switch {
	case truncated(err, b):
		return m, SuccessFile + " is truncated"
	case err != nil: // not a manifest
		return m, ""
	case marker.Success != nil && !*marker.Success:
		return m, SuccessFile + " reports that the job failed"
	}
	m.files = marker.Filenames
	if n, known := committed(marker.Metrics, marker.IOStatistics); known {
		m.whole = float64(len(m.files)) >= n
	} else {
		m.whole = len(m.files) < manifestLimit
	}
	return m, ""
}

// truncated reports whether err is about truncated JSON.
func truncated(err error, b []byte) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && syntax.Offset >= int64(len(b))
}

// committed returns the largest number of files in a job's statistics. The names
// are those of the manifest committer and the S3A committers.
func committed(metrics, ioStatistics json.RawMessage) (n float64, known bool) {
	type counters struct {
		Files   *float64 `json:"committer_files_committed"`
		Commits *float64 `json:"committer_commits_completed"`
	}
	var flat counters
	var nested struct {
		Counters counters `json:"counters"`
	}
	// Other formats do not contain these numbers.
	_ = json.Unmarshal(metrics, &flat)
	_ = json.Unmarshal(ioStatistics, &nested)
	for _, v := range []*float64{flat.Files, flat.Commits, nested.Counters.Files, nested.Counters.Commits} {
		if v != nil {
			n, known = max(n, *v), true
		}
	}
	return n, known
}

// applyManifest checks that the listed files exist, and removes unlisted ones if
// the list is complete. An entry is the path that the job wrote, usually an absolute
// URI, and counts if it is below the version's directory. If no entry is, the directory
// was written elsewhere and then moved, and files are matched by the last elements of
// their paths.
func (m *markers) applyManifest(mf manifest, l *Listing) error {
	moved := !slices.ContainsFunc(mf.files, func(entry string) bool { _, inside := m.inside(entryPath(entry)); return inside })
	listed := make(map[string]bool, len(mf.files))
	for _, entry := range mf.files {
		p := entryPath(entry)
		name, inside := m.inside(p)
		switch {
		case inside:
		case moved:
			name = m.end(p)
		default:
			continue
		}
		if err := m.check(name, p, SuccessFile, l); err != nil || l.Incomplete != "" {
			return err
		}
		listed[name] = true
	}
	isListed := func(f File) bool { return listed[f.Name] }
	if mf.whole && slices.ContainsFunc(l.Files, isListed) {
		l.keep(isListed)
		l.listed = true
	}
	return nil
}

// check sets Incomplete if a file that a marker lists, as entry, is not there. A file in a directory that is not read is an error.
func (m *markers) check(name, entry, marker string, l *Listing) error {
	if m.have[name] {
		return nil
	}
	elements := strings.SplitN(name, "/", maxElements+1)
	for i := 1; i < len(elements); i++ {
		if m.unread[strings.Join(elements[:i], "/")] {
			return fmt.Errorf("%s: %w: %s lists %s, and files in directories are not read", m.src.Path(m.db, m.version), ErrLayout, marker, name)
		}
	}
	l.Incomplete = fmt.Sprintf("%s lists %s, which is not there", marker, entry)
	return nil
}

// blocks checks that the blocks that BlocksFile lists are there as a whole. Package finished checks everything else of it, and
// reports a damaged one.
func (m *markers) blocks(ctx context.Context, c *Contents, l *Listing) error {
	i := c.index(BlocksFile)
	if i < 0 {
		return nil
	}
	b, ok, err := m.read(ctx, c.Hidden[i])
	if err != nil {
		return err
	}
	l.Blocks = fmt.Sprintf("%x", sha256.Sum256(b))
	var file struct {
		CRC      string          `json:"crc32c"`
		Manifest json.RawMessage `json:"manifest"`
	}
	var manifest struct {
		Blocks []struct {
			Name string `json:"name"`
			Size int64  `json:"size"`
		} `json:"blocks"`
	}
	switch err := json.Unmarshal(b, &file); {
	case !ok || truncated(err, b):
		l.Incomplete = BlocksFile + " is truncated"
		return nil
	case err != nil || file.CRC != fmt.Sprintf("%08x", crc32.Checksum(file.Manifest, crc32.MakeTable(crc32.Castagnoli))) || json.Unmarshal(file.Manifest, &manifest) != nil:
		return nil //nolint:nilerr // package finished reports it
	}
	sizes := make(map[string]int64, len(c.Files))
	for _, f := range c.Files {
		sizes[f.Name] = f.Size
	}
	for _, block := range manifest.Blocks {
		if size, found := sizes[block.Name]; !found || size < block.Size {
			l.Incomplete = fmt.Sprintf("%s lists %s with %d bytes, of which %d are there", BlocksFile, block.Name, block.Size, size)
			return nil
		}
	}
	l.listed = true
	return nil
}

// keep removes the files for which want is false.
func (l *Listing) keep(want func(File) bool) {
	var kept []File
	for _, f := range l.Files {
		if want(f) {
			kept = append(kept, f)
		} else {
			l.LeftOut = append(l.LeftOut, f.Name)
		}
	}
	l.Files = kept
}

// entryPath returns the path of an entry: a URI with an escaped path, or a path.
func entryPath(entry string) string {
	if u, err := url.Parse(entry); err == nil && u.Scheme != "" && u.Path != "" {
		entry = u.Path
	}
	return path.Clean("/" + entry)
}

// inside returns the part of p below the version's directory.
func (m *markers) inside(p string) (string, bool) {
	dir := "/" + m.db + "/" + m.version + "/"
	i := strings.LastIndex(p, dir)
	if i < 0 {
		return "", false
	}
	return p[i+len(dir):], true
}

// maxElements is the number of path elements of a file that can be in a version: directories of a partitioned table, and a file of a
// MapFile.
const maxElements = MaxPartitionDepth + 2

// end returns the longest end of a path that is the name of a file, day=1/part-0 rather than part-0, or of one in a directory
// that is not read.
func (m *markers) end(p string) string {
	elements := strings.Split(p, "/")
	elements = elements[max(0, len(elements)-maxElements):]
	inUnread := ""
	for i := range elements {
		name := path.Join(elements[i:]...)
		if m.have[name] {
			return name
		}
		if inUnread == "" && m.unread[path.Dir(name)] {
			inUnread = name
		}
	}
	return inUnread
}
