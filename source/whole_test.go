package source_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"sequins/source"
	"sequins/test/expect"
)

// settle is the time that the tests of Settled wait.
const settle = 2 * time.Minute

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// at is a file that was written this long before noon, by a clock that no copy sets back if sure, and by any clock otherwise.
func at(name string, before time.Duration, sure bool) source.File {
	f := source.File{Name: name, Size: 1, ModTime: noon.Add(-before), Mark: "m"}
	if sure {
		f.Written = f.ModTime
	}
	return f
}

// A listed version has these files, listed at noon; texts are the contents of markers.
type listed struct {
	source.Source
	files   []source.File
	whole   bool
	texts   map[string]string
	renamed time.Time
	mute    bool // the server does not tell its time
}

func (l listed) Contents(context.Context, string, string) (source.Contents, error) {
	var keys source.Keys
	for _, f := range l.files {
		keys.Add(f)
	}
	c := keys.Contents()
	c.Whole, c.Now, c.Renamed = l.whole, noon, l.renamed
	if l.mute {
		c.Now = time.Time{}
	}
	c.Sort()
	return c, nil
}

func (l listed) Open(_ context.Context, _, _ string, f source.File, _ source.ReadOptions) (io.ReadCloser, error) {
	for _, each := range l.files {
		if each.Name == f.Name {
			return io.NopCloser(strings.NewReader(l.texts[f.Name])), nil
		}
	}
	return nil, fs.ErrNotExist
}

func (l listed) Path(db, version string) string { return path.Join("/", db, version) }

// sealed is the content of _BLOCKS.json with a manifest.
func sealed(manifest string) string {
	return fmt.Sprintf(`{"crc32c":"%08x","manifest":%s}`, crc32.Checksum([]byte(manifest), crc32.MakeTable(crc32.Castagnoli)), manifest)
}

func TestSettled(t *testing.T) {
	const sure, unsure = true, false
	manifest := map[string]string{"_SUCCESS": `{"success": true, "filenames": ["/db/1/part-0"]}`}
	for name, test := range map[string]struct {
		listed
		settled    bool
		incomplete string
	}{
		"no marker":              {listed{files: []source.File{at("part-0", 59*time.Minute, sure)}}, false, ""},
		"no marker, for an hour": {listed{files: []source.File{at("part-0", time.Hour, sure)}}, true, ""},
		"no marker, for an hour by a time that can be set": {listed{files: []source.File{at("part-0", time.Hour, unsure)}}, false, ""},
		"no marker, one of two is new":                     {listed{files: []source.File{at("part-0", time.Hour, sure), at("part-1", 0, sure)}}, false, ""},
		"no marker, a hidden file is new":                  {listed{files: []source.File{at("part-0", time.Hour, sure), at(".part-0.crc", 0, sure)}}, false, ""},
		"no marker, moved with its directory":              {listed{files: []source.File{at("day=1/part-0", time.Hour, sure)}, renamed: noon}, false, ""},
		"no marker, by the clock of another machine":       {listed{files: []source.File{at("part-0", time.Hour, sure)}, whole: true, mute: true}, false, ""},
		"no file":              {listed{}, false, ""},
		"a marker and no file": {listed{files: []source.File{at("_SUCCESS", time.Minute, sure)}}, false, ""},

		"an empty marker":                             {listed{files: []source.File{at("part-0", settle+1, sure), at("_SUCCESS", settle, sure)}}, true, ""},
		"an empty marker of the same time":            {listed{files: []source.File{at("part-0", settle, sure), at("_SUCCESS", settle, sure)}}, true, ""},
		"an empty marker that has just been written":  {listed{files: []source.File{at("part-0", settle+1, sure), at("_SUCCESS", settle-1, sure)}}, false, ""},
		"an empty marker that was copied first":       {listed{files: []source.File{at("part-0", settle, sure), at("_SUCCESS", settle+1, sure)}}, false, ""},
		"an empty marker, times can be set":           {listed{files: []source.File{at("part-0", settle+1, unsure), at("_SUCCESS", settle, unsure)}}, false, ""},
		"an empty marker, an object of several parts": {listed{files: []source.File{at("part-0", settle+1, unsure), at("_SUCCESS", settle, sure)}, whole: true}, false, ""},
		"a marker, and no upload is done":             {listed{files: []source.File{at("_SUCCESS", 59*time.Minute, sure)}, whole: true}, false, "no data file yet"},
		"a marker, and no upload in an hour":          {listed{files: []source.File{at("_SUCCESS", time.Hour, sure)}, whole: true}, false, ""},

		"a manifest":                        {listed{files: []source.File{at("part-0", 1, unsure), at("_SUCCESS", 2, unsure)}, texts: manifest}, true, ""},
		"a manifest, and a file is missing": {listed{files: []source.File{at("part-1", 1, unsure), at("_SUCCESS", 2, unsure)}, texts: manifest}, false, "part-0, which is not there"},
		"a commit": {listed{files: []source.File{at("part-0", 1, unsure), at("_committed_7", 2, unsure)}, texts: map[string]string{
			"_committed_7": `{"added": ["part-0"], "removed": []}`}}, true, ""},
		"a commit of one directory": {listed{files: []source.File{at("day=1/part-0", 1, unsure), at("day=1/_committed_7", 2, unsure)}, texts: map[string]string{
			"day=1/_committed_7": `{"added": ["part-0"], "removed": []}`}}, false, ""},
		"a job that was tried again": {listed{files: []source.File{at("part-0", 3, unsure), at("_started_6", 9, unsure), at("_started_7", 5, unsure), at("_committed_7", 2, unsure)},
			texts: map[string]string{"_committed_7": `{"added": ["part-0"], "removed": []}`}}, true, ""},
		"a job that goes on": {listed{files: []source.File{at("part-0", 3, unsure), at("_started_7", 5, unsure), at("_committed_7", 2, unsure), at("_started_8", 1, unsure)},
			texts: map[string]string{"_committed_7": `{"added": ["part-0"], "removed": []}`}}, false, "_started_8 without"},
		"blocks": {listed{files: []source.File{at("part-00000.block", 1, unsure), at("_BLOCKS.json", 2, unsure)}, texts: map[string]string{
			"_BLOCKS.json": sealed(`{"blocks": [{"name": "part-00000.block", "size": 1}]}`)}}, true, ""},
		"blocks, and one is missing": {listed{files: []source.File{at("part-00000.block", 1, unsure), at("_BLOCKS.json", 2, unsure)}, texts: map[string]string{
			"_BLOCKS.json": sealed(`{"blocks": [{"name": "part-00000.block", "size": 1}, {"name": "part-00001.block", "size": 1}]}`)}}, false, "lists part-00001.block"},
		"blocks, and one is being copied": {listed{files: []source.File{at("part-00000.block", 1, unsure), at("_BLOCKS.json", 2, unsure)}, texts: map[string]string{
			"_BLOCKS.json": sealed(`{"blocks": [{"name": "part-00000.block", "size": 2}]}`)}}, false, "of which 1 are there"},
		"a damaged manifest of blocks": {listed{files: []source.File{at("part-00000.block", 1, unsure), at("_BLOCKS.json", 2, unsure)}, texts: map[string]string{
			"_BLOCKS.json": `{"crc32c":"00000000","manifest": {"blocks": [{"name": "paRt-00000.block", "size": 1}]}}`}}, false, ""},
		"half a manifest of blocks": {listed{files: []source.File{at("part-00000.block", 1, unsure), at("_BLOCKS.json", 2, unsure)}, texts: map[string]string{
			"_BLOCKS.json": `{"manifest": {"blocks": [{"na`}}, false, "truncated"},

		"rsync":          {listed{files: []source.File{at("part-0", 2*time.Hour, sure), at(".part-1.Ab3dEf", 0, sure)}}, false, "there is .part-1.Ab3dEf"},
		"hdfs -put":      {listed{files: []source.File{at("part-0", 2, unsure), at("part-1._COPYING_", 1, unsure), at("_SUCCESS", 1, unsure)}}, false, "part-1._COPYING_"},
		"distcp":         {listed{files: []source.File{at("part-0", 2, unsure), at(".distcp.tmp.attempt_local17_0001_m_000000_0", 1, unsure)}}, false, ".distcp.tmp."},
		"rclone":         {listed{files: []source.File{at("part-0", 2, sure), at("part-1.1a2b3c4d.partial", 1, sure)}}, false, "partial"},
		"Flink":          {listed{files: []source.File{at("part-0", 2, sure), at(".part-1.inprogress.0815", 1, sure)}}, false, "inprogress"},
		"in a partition": {listed{files: []source.File{at("day=1/part-0", 2, sure), at("day=1/part-1.tmp", 1, sure), at("_SUCCESS", 0, sure)}}, false, "day=1/part-1.tmp"},
		"left over":      {listed{files: []source.File{at("part-0", 2*time.Hour, sure), at("part-1.tmp", 61*time.Minute, sure)}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := source.List(t.Context(), test.listed, "db", "1", false)
			if err != nil || !strings.Contains(l.Incomplete, test.incomplete) || (l.Incomplete == "") != (test.incomplete == "") {
				t.Fatalf("incomplete: %q, %v", l.Incomplete, err)
			}
			if got := l.Incomplete == "" && l.Settled(settle); got != test.settled {
				t.Errorf("settled: %t", got)
			}
			for _, f := range l.Files {
				if source.Hidden(path.Base(f.Name)) {
					t.Errorf("%s is data", f.Name)
				}
			}
		})
	}
}

// A temporary file that is left over is reported.
func TestLeftOver(t *testing.T) {
	l, err := source.List(t.Context(), listed{files: []source.File{at("part-0", 2*time.Hour, true), at("part-1.tmp", 61*time.Minute, true)}}, "db", "1", false)
	if err != nil || len(l.LeftOut) != 1 || l.LeftOut[0] != "part-1.tmp" {
		t.Errorf("left out: %q, %v", l.LeftOut, err)
	}
}

// The same files with another marker or hidden file are another listing.
func TestFingerprintOfHidden(t *testing.T) {
	print := func(files ...source.File) [32]byte {
		l, err := source.List(t.Context(), listed{files: files}, "db", "1", false)
		expect.NoError(t, err)
		return l.Fingerprint
	}
	part, seen := at("part-0", 1, true), map[[32]byte]string{}
	other := part
	other.Mark = "n"
	for name, files := range map[string][]source.File{
		"a file": {part}, "another mark": {other}, "a marker": {part, at("_SUCCESS", 0, true)}, "a later marker": {part, at("_SUCCESS", 1, true)},
		"a hidden file": {part, at(".x", 1, true)}, "a hidden file that has changed": {part, at(".x", 2, true)},
	} {
		sum := print(files...)
		if same, found := seen[sum]; found {
			t.Errorf("%s has the fingerprint of %s", name, same)
		}
		seen[sum] = name
	}
}
