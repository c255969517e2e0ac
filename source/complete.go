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
	budget      int64 // remaining bytes to read

	have   map[string]bool   // existing files
	listed map[string]bool   // existing files that a marker lists
	under  map[string]string // by directory, its first listed file
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
	return m.applyManifest(ctx, mf, c, l)
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

func truncated(err error, b []byte) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && syntax.Offset >= int64(len(b))
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
// the list is complete.
func (m *markers) applyManifest(ctx context.Context, mf manifest, c *Contents, l *Listing) error {
	missing, err := m.missing(ctx, mf.files)
	if err != nil {
		return err
	}
	if missing != "" {
		l.Incomplete = fmt.Sprintf("%s lists %s, which is not there", SuccessFile, missing)
		return nil
	}
	if err := m.checkNested(c, SuccessFile); err != nil {
		return err
	}
	listed := func(f File) bool { return m.listed[f.Name] }
	if mf.whole && slices.ContainsFunc(l.Files, listed) {
		l.keep(listed)
		l.listed = true
	}
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

// checkNested returns an error if files in directories that are not read are
// listed.
func (m *markers) checkNested(c *Contents, marker string) error {
	for _, dir := range c.Dirs {
		if nested := m.under[dir]; nested != "" {
			return fmt.Errorf("%s: %w: %s lists %s, and files in directories are not read", m.src.Path(m.db, m.version), ErrLayout, marker, nested)
		}
	}
	return nil
}

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

// missing returns the first listed file that does not exist. An entry is the path
// that the job wrote, usually an absolute URI, and counts if it is below the
// version's directory. If no entry is, the directory was written elsewhere and
// then moved, and files are matched by the last elements of their paths.
func (m *markers) missing(ctx context.Context, list []string) (string, error) {
	moved := true
	paths := make([]string, len(list))
	for i, entry := range list {
		paths[i] = entryPath(entry)
		if _, ok := m.inside(paths[i]); ok {
			moved = false
		}
	}
	for _, p := range paths {
		ok, err := true, error(nil)
		if rel, inside := m.inside(p); inside {
			ok, err = m.exists(ctx, rel)
		} else if moved {
			ok, err = m.endExists(ctx, p)
		}
		if err != nil {
			return "", err
		}
		if !ok {
			return p, nil
		}
	}
	return "", nil
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

// maxDepth is the number of path elements that are matched in a moved version:
// directories of a partitioned table, and a file of a MapFile. lookups is the
// number of them for which the source is asked.
const (
	maxDepth = MaxPartitionDepth + 2
	lookups  = 4
)

func (m *markers) endExists(ctx context.Context, p string) (bool, error) {
	ends := endsOf(p)
	for _, end := range slices.Backward(ends) { // day=1/part-0 rather than part-0
		if m.have[end] {
			return m.exists(ctx, end)
		}
	}
	for _, end := range ends[:min(lookups, len(ends))] {
		if ok, err := m.exists(ctx, end); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// endsOf returns the ends of a path, the shortest first.
func endsOf(p string) (ends []string) {
	rest, end := p, ""
	for range maxDepth {
		i := strings.LastIndexByte(rest, '/')
		if i < 0 {
			break
		}
		rest, end = rest[:i], path.Join(rest[i+1:], end)
		ends = append(ends, end)
	}
	return ends
}

// exists reports whether a listed file exists, and records it: a data file, or
// another such as a MapFile's index.
func (m *markers) exists(ctx context.Context, name string) (bool, error) {
	if !m.have[name] {
		if !ValidFile(name) {
			return false, nil
		}
		if ok, err := Exists(ctx, m.src, m.db, m.version, name); !ok || err != nil {
			return ok, err
		}
	}
	m.have[name], m.listed[name] = true, true
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if m.under[dir] == "" {
			m.under[dir] = name
		}
	}
	return true, nil
}
