package source

import (
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"
)

// Whether all files of a version are there cannot be known from the source: copy tools write _SUCCESS first, objects
// appear minutes apart, and writers pause. A listing shows it if a marker lists the files, or if nothing has been written
// for long by a clock that no copy sets back. Otherwise the caller waits and lists again.

// leftOverAfter is how old a listing must be to be whole without a marker, and how long a temporary file of a copy tool is
// taken to be written after its last change.
const leftOverAfter = time.Hour

// temporaryName matches temporary files of copy tools: of rsync (.NAME.Ab3dEf), hdfs dfs -put (NAME._COPYING_), distcp
// (.distcp.tmp.attempt_…), rclone, Flink and others.
var temporaryName = regexp.MustCompile(`^\..+\.[A-Za-z0-9]{6}$|\._COPYING_$|^\.distcp\.tmp\.|\.partial$|\.tmp$|\.inprogress(\.|$)`)

func isTemporary(name string) bool { return temporaryName.MatchString(name) }

// beingWritten returns the first temporary file of a copy tool that has changed within an hour, "" if there is none, and
// the others.
func (c *Contents) beingWritten() (name string, leftOver []string) {
	for _, m := range c.Hidden {
		switch age := c.now().Sub(latest(m.ModTime, m.Written)); {
		case m.Dir || !isTemporary(path.Base(m.Name)):
		case age.Abs() > leftOverAfter: // also one from the future
			leftOver = append(leftOver, m.Name)
		case name == "":
			name = m.Name
		}
	}
	return name, leftOver
}

func (c *Contents) now() time.Time {
	if c.Now.IsZero() {
		return time.Now()
	}
	return c.Now
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// changed returns when a file was last written, as the source shows it.
func (c *Contents) changed() (newest time.Time) {
	for _, f := range c.Files {
		newest = latest(newest, latest(f.ModTime, f.Written))
	}
	for _, m := range c.Hidden {
		newest = latest(newest, latest(m.ModTime, m.Written))
	}
	return newest
}

// quiet returns for how long nothing has been written, by a clock that no copy sets back; 0 if there is none, or no file.
func (c *Contents) quiet() time.Duration {
	newest := c.Renamed
	for _, m := range c.Hidden {
		if !m.Dir && m.Written.IsZero() {
			return 0
		}
		newest = latest(newest, m.Written)
	}
	for _, f := range c.Files {
		if f.Written.IsZero() {
			return 0
		}
		newest = latest(newest, f.Written)
	}
	if len(c.Files) == 0 || c.Whole && c.Now.IsZero() {
		return 0 // the clock of a server is not that of this machine
	}
	return max(0, c.now().Sub(newest))
}

// marked reports whether there are files and _SUCCESS, and no file is newer, by a clock that no copy sets back.
func (c *Contents) marked() bool {
	i := c.index(SuccessFile)
	if i < 0 || len(c.Files) == 0 {
		return false
	}
	marker := c.Hidden[i].Written
	return !slices.ContainsFunc(c.Files, func(f File) bool { return f.Written.IsZero() || f.Written.After(marker) })
}

// fingerprint is equal for listings with the same files, markers, hidden files and directories, by name, size, time and mark.
func (c *Contents) fingerprint() (sum [sha256.Size]byte) {
	h := sha256.New()
	add := func(f File) { fmt.Fprintf(h, "%q %d %d %q\n", f.Name, f.Size, f.ModTime.UnixNano(), f.Mark) } //nolint:errcheck // never fails
	for _, f := range c.Files {
		add(f)
	}
	for _, m := range c.Hidden {
		add(m.File)
	}
	fmt.Fprintf(h, "%q", c.Dirs) //nolint:errcheck // never fails
	h.Sum(sum[:0])
	return sum
}
