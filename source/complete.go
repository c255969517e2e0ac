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
	"strings"
)

// SuccessFile is the name of the marker that a finished job leaves behind.
const SuccessFile = "_SUCCESS"

// maxSuccess bounds how much of a marker is read. Hadoop's committers list no
// more than the first hundred files; this is room for a hundred thousand.
const maxSuccess = 16 << 20

// CheckComplete reports whether the job that writes a version is done with it,
// and if not, why: with requireSuccess there must be a _SUCCESS file, and
// where there is one that lists files, as Hadoop's manifest and S3A committers
// write, these must be there. The files are those that src.Files returned.
func CheckComplete(ctx context.Context, src Source, db, version string, files []File, requireSuccess bool) (complete bool, reason string, err error) {
	marker, err := readMarker(ctx, src, db, version)
	if errors.Is(err, fs.ErrNotExist) {
		if requireSuccess {
			return false, "there is no " + SuccessFile + " file yet", nil
		}
		return true, "", nil
	}
	if err != nil {
		return false, "", err
	}
	list, reason := parseMarker(marker)
	if reason != "" {
		return false, reason, nil
	}
	c := checker{src: src, db: db, version: version, have: make(map[string]bool, len(files))}
	for _, f := range files {
		c.have[f.Name] = true
	}
	missing, err := c.missing(ctx, list)
	if err != nil {
		return false, "", err
	}
	if missing != "" {
		return false, fmt.Sprintf("%s lists %s, which is not there", SuccessFile, missing), nil
	}
	return true, "", nil
}

func readMarker(ctx context.Context, src Source, db, version string) ([]byte, error) {
	f, err := src.Open(ctx, db, version, File{Name: SuccessFile}, ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSuccess+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", SuccessFile, src.Path(db, version), err)
	}
	if len(b) > maxSuccess {
		return nil, fmt.Errorf("%s of %s is larger than %d bytes", SuccessFile, src.Path(db, version), maxSuccess)
	}
	return b, nil
}

// parseMarker returns the files that a marker lists, none if it is not of the
// kind that lists any. The format is that of Hadoop's ManifestSuccessData,
// which is also that of S3A's SuccessData.
func parseMarker(b []byte) (files []string, reason string) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return nil, ""
	}
	var marker struct {
		Success   *bool    `json:"success"`
		Filenames []string `json:"filenames"`
	}
	err := json.Unmarshal(b, &marker)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(b)):
		return nil, SuccessFile + " ends in the middle"
	case err != nil: // somebody's own kind of marker
		return nil, ""
	case marker.Success != nil && !*marker.Success:
		return nil, SuccessFile + " says that the job failed"
	}
	return marker.Filenames, ""
}

type checker struct {
	src         Source
	db, version string
	have        map[string]bool
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
		return true, nil
	}
	if !ValidFile(name) {
		return false, nil
	}
	f, err := c.src.Open(ctx, c.db, c.version, File{Name: name}, ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
