package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"sequins/internal/human"
)

const (
	// BlocksFile is the name of the manifest of a finished version, see package finished.
	BlocksFile = "_BLOCKS.json"
	// BlockSuffix is the suffix of the names of blocks in a finished version.
	BlockSuffix = ".block"
)

// ErrLayout is wrapped by errors for a version that is not a plain set of data
// files: a table whose snapshots define which files are current, or data in
// other subdirectories than those of a partitioned table.
var ErrLayout = errors.New("this layout is not supported")

// Listing is the result of List.
type Listing struct {
	// Files are the data files in ascending order of their names; for an
	// incomplete version, all files.
	Files []File
	// LeftOut are the names of files that a commit or manifest excludes, and of
	// directories that are not read, which end in a slash.
	LeftOut []string
	// Incomplete is why the version is not complete; "" if it is.
	Incomplete string
	// Success reports whether there is a _SUCCESS file.
	Success bool
	// Fingerprint is equal for listings with the same files, also hidden ones, by
	// name, size, time and mark.
	Fingerprint [sha256.Size]byte
	// Blocks is the SHA-256 of BlocksFile, as hexadecimal digits; "" if there is none, or it was not read.
	Blocks string

	listed bool          // a marker lists the files
	marked bool          // no data file is newer than _SUCCESS, by a clock that no copy sets back
	quiet  time.Duration // see Contents.quiet
}

// Settled reports whether the listing alone shows that the version is complete and no
// file is still being written. Otherwise another listing after settle must have the
// same Fingerprint. These are the rules:
//
//   - A marker that lists the files counts alone.
//   - An empty _SUCCESS counts if no data file is newer, and it is as old as settle, by a
//     clock that no copy sets back.
//   - Without a marker, nothing may have been written for an hour, by such a clock.
func (l *Listing) Settled(settle time.Duration) bool {
	return l.listed || l.quiet >= leftOverAfter || l.marked && l.quiet >= settle
}

// List returns the data files of a version and whether the job that writes it
// is done, as far as one listing tells; see Listing.Settled. These are the rules:
//
//   - A version that a table format owns is an error of the class ErrLayout.
//   - _temporary, .spark-staging-<id>, or _started_<id> without _committed_<id>, is the sign of a job
//     that is not done, also in a directory of a partitioned table.
//   - A temporary file of a copy tool that has changed within an hour is the sign of
//     a copy that is not done. An older one is left out.
//   - Blocks without their manifest (BlocksFile), or a manifest without all of its
//     blocks, are a copy that is not done.
//   - Where uploads that are running are not listed, _SUCCESS without data files is a
//     copy that is not done, for an hour.
//   - With requireSuccess there must be a _SUCCESS file.
//   - The files that a _committed_<id> or a _SUCCESS lists must be there, and
//     those that it leaves out are not data; see commits and manifest for the
//     exceptions.
//   - The files in directories of a partitioned table (day=2026-01-31), up to 8
//     deep, are data. Deeper ones, and other directories without any file beside
//     them, are an error of the class ErrLayout. Other directories are left out.
//
// Errors of src are returned as they are. A marker that cannot be read or
// understood is an error too.
func List(ctx context.Context, src Source, db, version string, requireSuccess bool) (Listing, error) {
	c, err := src.Contents(ctx, db, version)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Files: c.Files, Success: c.has(SuccessFile), Fingerprint: c.fingerprint(), quiet: c.quiet(), marked: c.marked()}
	if c.Table != "" {
		partition, entry := partitionPath(c.Table)
		return l, tableError(strings.TrimSuffix(src.Path(db, version)+"/"+partition, "/"), entry)
	}
	if i := slices.IndexFunc(c.Hidden, Marker.unfinished); i >= 0 {
		l.Incomplete = "there is a " + c.Hidden[i].Name + ": a job is writing the version, or has failed"
		return l, nil
	}
	name, leftOver := c.beingWritten()
	if name != "" {
		l.Incomplete = "there is " + name + ": a file is being copied"
		return l, nil
	}
	other := func(f File) bool { return !strings.HasSuffix(f.Name, BlockSuffix) }
	if len(c.Files) > 0 && !slices.ContainsFunc(c.Files, other) && !c.has(BlocksFile) {
		l.Incomplete = "there are blocks and no " + BlocksFile + " yet: a copy has not ended"
		return l, nil
	}
	if c.Whole && l.Success && len(c.Files)+len(c.Dirs) == 0 && c.now().Sub(c.changed()) < leftOverAfter {
		l.Incomplete = "there is " + SuccessFile + ", and no data file yet: the first upload may still be running"
		return l, nil
	}
	m := &markers{src: src, db: db, version: version, budget: maxMarkers,
		have: make(map[string]bool, len(c.Files)), listed: map[string]bool{}, under: map[string]string{}}
	for _, f := range c.Files {
		m.have[f.Name] = true
	}
	if err := m.blocks(ctx, &c, &l); err != nil || l.Incomplete != "" {
		return l, err
	}
	if err := m.commits(ctx, &c, &l); err != nil || l.Incomplete != "" {
		return l, err
	}
	if !l.Success && requireSuccess {
		l.Incomplete = "there is no " + SuccessFile + " file yet"
		return l, nil
	}
	if err := m.success(ctx, &c, &l); err != nil || l.Incomplete != "" {
		return l, err
	}
	if err := c.checkDirs(); err != nil {
		return l, fmt.Errorf("%s: %w", src.Path(db, version), err)
	}
	l.LeftOut = append(l.LeftOut, leftOver...)
	for _, name := range c.Dirs {
		l.LeftOut = append(l.LeftOut, name+"/")
	}
	return l, nil
}

// temporaryDir is where Hadoop's committers keep the files of unfinished tasks.
// They remove it before they write _SUCCESS. Spark moves the partitions that it overwrites
// (spark.sql.sources.partitionOverwriteMode=dynamic) out of a directory stagingDir, one after another, and removes it last.
const (
	temporaryDir = "_temporary"
	stagingDir   = ".spark-staging-"
)

func (m Marker) unfinished() bool {
	base := path.Base(m.Name)
	return base == temporaryDir || strings.HasPrefix(base, stagingDir)
}

func (c *Contents) has(name string) bool { return c.index(name) >= 0 }

func (c *Contents) index(name string) int {
	return slices.IndexFunc(c.Hidden, func(m Marker) bool { return m.Name == name })
}

// checkDirs refuses directories that probably contain data.
func (c *Contents) checkDirs() error {
	deep := slices.DeleteFunc(slices.Clone(c.Dirs), func(name string) bool { return !IsPartition(path.Base(name)) })
	if len(c.Files) == 0 && len(c.Dirs) > len(deep) {
		return fmt.Errorf("%w: the version has only directories (%s), and files in directories are not read unless they are named column=value", ErrLayout, human.Some(c.Dirs))
	}
	for _, m := range c.Hidden {
		if m.Dir && strings.HasPrefix(path.Base(m.Name), "_") && strings.Contains(path.Base(m.Name), "=") {
			return fmt.Errorf("%w: %s is a directory of a partitioned table, and names that begin with _ are not read: rename the column", ErrLayout, m.Name)
		}
	}
	if len(deep) > 0 {
		return fmt.Errorf("%w: directories of a partitioned table are nested more than %d deep (%s), and files in these are not read", ErrLayout, MaxPartitionDepth, human.Some(deep))
	}
	return nil
}

// maxSiblings is the number of versions that FindSuccess checks.
const maxSiblings = 20

// FindSuccess returns the newest of some versions that has a _SUCCESS file, or
// "" if none has. names are in ascending order; only the last 20 are looked at.
// Those that are gone, or of which Lasting says that no look can help, are passed
// over. Where another error leaves it open whether one has the file, it is returned.
func FindSuccess(ctx context.Context, src Source, db string, names []string) (version string, err error) {
	for _, name := range slices.Backward(names[max(0, len(names)-maxSiblings):]) {
		has, err := hasSuccess(ctx, src, db, name)
		if err != nil && !Lasting(err) {
			return "", fmt.Errorf("looking for %s of version %s: %w", SuccessFile, name, err)
		}
		if has {
			return name, nil
		}
	}
	return "", nil
}

// hasSuccess reports whether a version has a _SUCCESS file. One that cannot be
// opened, as its blocks are lost, is there if it is listed.
func hasSuccess(ctx context.Context, src Source, db, version string) (bool, error) {
	has, err := Exists(ctx, src, db, version, SuccessFile)
	if err == nil || Lasting(err) || ctx.Err() != nil {
		return has, err
	}
	c, lerr := src.Contents(ctx, db, version)
	switch {
	case lerr == nil:
		return c.has(SuccessFile), nil
	case errors.Is(lerr, fs.ErrNotExist):
		return false, nil
	}
	return false, lerr
}
