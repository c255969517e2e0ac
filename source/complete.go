package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// SuccessFile is the name of the marker that a finished job leaves behind.
const SuccessFile = "_SUCCESS"

const (
	// maxMarkers bounds how many bytes of markers are read of one version.
	// Hadoop's committers list no more than the first hundred files; this is room
	// for a hundred thousand.
	maxMarkers = 16 << 20
	// maxListed bounds how many elements the JSON of a marker may have.
	maxListed = 1 << 20
	// manifestLimit is how many files Hadoop's committers list at most
	// (SUCCESS_MARKER_FILE_LIMIT).
	manifestLimit = 100
)

// markers reads and applies the markers of one version.
type markers struct {
	src         Source
	db, version string
	budget      int64 // how many bytes may still be read
	checker     *checker
}

// read reads a marker. ok is false if it has been removed.
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
	for _, marker := range c.Hidden {
		if marker.Name != SuccessFile {
			continue
		}
		b, ok, err := m.read(ctx, marker)
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
	return nil
}

// A manifest is the list in _SUCCESS. The format is that of Hadoop's
// ManifestSuccessData, which is also that of S3A's SuccessData.
//
// The list is not always complete: the committers stop after the first hundred
// files. A list leaves files out only if it is known to be the whole one: by the
// number of files that the job's statistics give, or, without these, by being
// shorter than a hundred. A list without any data file leaves nothing out.
type manifest struct {
	files []string
	whole bool
}

// parseManifest returns an empty manifest if the marker is not of the kind that
// lists any. reason is why the version is not complete.
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
		return m, SuccessFile + " ends in the middle"
	case err != nil: // somebody's own kind of marker
		return m, ""
	case marker.Success != nil && !*marker.Success:
		return m, SuccessFile + " says that the job failed"
	}
	m.files = marker.Filenames
	if n, known := committed(marker.Metrics, marker.IOStatistics); known {
		m.whole = float64(len(m.files)) >= n
	} else {
		m.whole = len(m.files) < manifestLimit
	}
	return m, ""
}

// truncated reports whether err is about JSON that ends too early.
func truncated(err error, b []byte) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && syntax.Offset >= int64(len(b))
}

// committed returns the largest number of files that a job's statistics give.
// The names are those of the manifest committer and of the S3A committers.
func committed(metrics, ioStatistics json.RawMessage) (n float64, known bool) {
	type counters struct {
		Files   *float64 `json:"committer_files_committed"`
		Commits *float64 `json:"committer_commits_completed"`
	}
	var flat counters
	var nested struct {
		Counters counters `json:"counters"`
	}
	// What is not of this form has no such numbers.
	_ = json.Unmarshal(metrics, &flat)
	_ = json.Unmarshal(ioStatistics, &nested)
	for _, v := range []*float64{flat.Files, flat.Commits, nested.Counters.Files, nested.Counters.Commits} {
		if v != nil {
			n, known = max(n, *v), true
		}
	}
	return n, known
}

// applyManifest checks that listed files are there, and takes out those that the
// list leaves out.
func (m *markers) applyManifest(ctx context.Context, mf manifest, c *Contents, l *Listing) error {
	missing, err := m.checker.missing(ctx, mf.files)
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
	listed := func(f File) bool { return m.checker.listed[f.Name] }
	if mf.whole && slices.ContainsFunc(l.Files, listed) {
		l.keep(listed)
	}
	return nil
}

// checkNested refuses listed files in directories that are not read.
func (m *markers) checkNested(c *Contents, marker string) error {
	for _, dir := range c.Dirs {
		if nested := m.checker.under[dir]; nested != "" {
			return fmt.Errorf("%s: %w: %s lists %s, and files in directories are not read", m.src.Path(m.db, m.version), ErrLayout, marker, nested)
		}
	}
	return nil
}

// keep takes the files out that are not wanted.
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

// A checker looks for the files that a marker lists.
type checker struct {
	*markers
	have   map[string]bool   // files that are there
	listed map[string]bool   // those of them that are listed
	under  map[string]string // the first listed file in each directory
}

func newChecker(m *markers, files []File) *checker {
	c := &checker{markers: m, have: make(map[string]bool, len(files)), listed: map[string]bool{}, under: map[string]string{}}
	for _, f := range files {
		c.have[f.Name] = true
	}
	return c
}

// missing returns the first listed file that is not there. A listed file has
// the path that the job gave to it, mostly an absolute URI, and counts if that
// is under the version's directory. If none is, the directory was written
// somewhere else and then moved here, and the files are found by the ends of
// their paths.
func (c *checker) missing(ctx context.Context, list []string) (string, error) {
	moved := true
	paths := make([]string, len(list))
	for i, entry := range list {
		paths[i] = entryPath(entry)
		if _, ok := c.inside(paths[i]); ok {
			moved = false
		}
	}
	for _, p := range paths {
		var ok bool
		var err error
		if rel, inside := c.inside(p); inside {
			ok, err = c.exists(ctx, rel)
		} else {
			ok = true
			if moved {
				ok, err = c.endExists(ctx, p)
			}
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

// entryPath takes the path out of an entry: a URI, whose path is escaped, or
// a path.
func entryPath(entry string) string {
	if u, err := url.Parse(entry); err == nil && u.Scheme != "" && u.Path != "" {
		entry = u.Path
	}
	return path.Clean("/" + entry)
}

// inside returns the part of p after the version's directory.
func (c *checker) inside(p string) (string, bool) {
	dir := "/" + c.db + "/" + c.version + "/"
	i := strings.LastIndex(p, dir)
	if i < 0 {
		return "", false
	}
	return p[i+len(dir):], true
}

// maxDepth is how deep under its directory a moved job's file is looked for.
const maxDepth = 4

func (c *checker) endExists(ctx context.Context, p string) (bool, error) {
	rest, end := p, ""
	for range maxDepth {
		i := strings.LastIndexByte(rest, '/')
		if i < 0 {
			break
		}
		rest, end = rest[:i], path.Join(rest[i+1:], end)
		if ok, err := c.exists(ctx, end); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// exists reports whether a file is there: one of the data files, or another,
// such as a MapFile's index.
func (c *checker) exists(ctx context.Context, name string) (bool, error) {
	if c.have[name] {
		c.note(name)
		return true, nil
	}
	if !ValidFile(name) {
		return false, nil
	}
	ok, err := Exists(ctx, c.src, c.db, c.version, name)
	if ok {
		c.have[name] = true
		c.note(name)
	}
	return ok, err
}

// note takes note of a listed file that is there.
func (c *checker) note(name string) {
	c.listed[name] = true
	if dir, _, nested := strings.Cut(name, "/"); nested && c.under[dir] == "" {
		c.under[dir] = name
	}
}
