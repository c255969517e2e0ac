package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/load"
	"sequins/test/expect"
	"sequins/test/harness"
)

// makeFiles makes a file of each format with the awkward records, "empty" deleted from the Sparkey log.
func makeFiles(t *testing.T) (block, sequence, log string) {
	t.Helper()
	dir := t.TempDir()
	block, sequence, log = filepath.Join(dir, "00002.block"), filepath.Join(dir, "part-00000"), filepath.Join(dir, "x", "part-0.spl")
	writeData(t, load.FormatBlocks, block, awkward...)
	// The first record of a key is not the one that counts.
	writeData(t, load.FormatSequenceFile, sequence, append([]dataRecord{{Key: "large", Value: "old"}}, awkward...)...)
	writeData(t, load.FormatSparkey, log, awkward...)
	return block, sequence, log
}

func TestCat(t *testing.T) {
	block, sequence, log := makeFiles(t)
	large := strings.Repeat("0123456789", 20_000)
	lines := []string{
		"\tthe empty key",
		`\x00\xff` + "\tbinary key",
		"a/b c\tspaces" + `\tand tabs\nand lines\r`,
		`back\\slash` + "\t" + `\x1b[2J\x07`,
		"empty\t",
		"large\t" + large,
		"ключ\tзначение " + `\xe2\x82 \xe2\x80\xae`,
	}
	for path, want := range map[string][]string{
		block:    lines,
		sequence: append([]string{"large\told"}, lines...),
		log:      append(lines[:len(lines):len(lines)], "empty"),
	} {
		got := sequins(t, "cat", path)
		got.wants(t, exitOK)
		if got.stdout != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s: got\n%.1000s", path, got.stdout)
		}
	}
}

func TestCatJSON(t *testing.T) {
	_, _, log := makeFiles(t)
	got := sequins(t, "cat", "--json", log)
	got.wants(t, exitOK)
	want := strings.Join([]string{
		`{"key":"","value":"the empty key"}`,
		`{"key_base64":"AP8=","value":"binary key"}`,
		`{"key":"a/b c","value":"spaces\tand tabs\nand lines\r"}`,
		`{"key":"back\\slash","value":"\u001b[2J\u0007"}`,
		`{"key":"empty","value":""}`,
		`{"key":"large","value":"` + strings.Repeat("0123456789", 20_000) + `"}`,
		`{"key":"ключ","value_base64":"0LfQvdCw0YfQtdC90LjQtSDigiDigK4="}`,
		`{"key":"empty","deleted":true}`,
	}, "\n") + "\n"
	if got.stdout != want {
		t.Errorf("got\n%.1000s", got.stdout)
	}
}

func TestCatOfNoFile(t *testing.T) {
	alien, empty := filepath.Join(t.TempDir(), "alien"), t.TempDir()
	writeFile(t, alien, "hello")
	sequins(t, "cat", empty).wants(t, exitFailure, "sequins: open "+empty+": not a regular file")
	sequins(t, "cat", alien).wants(t, exitUnreadable, "sequins: "+alien+" is neither a block, nor a SequenceFile, Sparkey log, Avro or Parquet file")
	sequins(t, "cat", "s3://bucket/db/1/part-0").wants(t, exitUsage, "sequins: s3://bucket/db/1/part-0 is not a file of this machine: copy it with ")
	sequins(t, "cat", "/nowhere").wants(t, exitAbsent, "sequins: open /nowhere: no such file or directory")
}

func TestVerifyGood(t *testing.T) {
	block, sequence, log := makeFiles(t)
	dir := filepath.Dir(block)
	writeFile(t, filepath.Join(dir, "MANIFEST.json"), "{}")
	writeFile(t, filepath.Join(dir, "_hidden", "part-00000"), "SEQ")
	for _, args := range [][]string{{block, sequence, log}, {dir}, {dir + "/"}, {filepath.Dir(log), block, sequence}} {
		r := sequins(t, append([]string{"verify"}, args...)...)
		r.wants(t, exitOK)
		if r.stdout != "good: 3 files with 23 records\n" {
			t.Errorf("%v: said %q", args, r.stdout)
		}
	}
	db := t.TempDir()
	link := filepath.Join(db, "link")
	expect.NoError(t, os.Symlink(dir, link))
	expect.NoError(t, os.Symlink(".", filepath.Join(db, "again")))
	expect.NoError(t, os.Symlink(".", filepath.Join(db, "once more")))
	for _, linked := range []string{link, db} {
		if r := sequins(t, "verify", linked); r.stdout != "good: 3 files with 23 records\n" {
			t.Errorf("through a link: said %q, %q", r.stdout, r.stderr)
		}
	}
	expect.NoError(t, os.Symlink("/nowhere", filepath.Join(db, "dangling")))
	sequins(t, "verify", db).wants(t, exitAbsent, "bad: lstat "+db+"/dangling/: no such file or directory", "sequins: 1 of 4 files are bad")
}

// A load reads only the data of a MapFile. The index is a SequenceFile, too.
func TestVerifyMapFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "part-r-00000")
	writeData(t, load.FormatSequenceFile, filepath.Join(dir, "data"), awkward...)
	writeData(t, load.FormatSequenceFile, filepath.Join(dir, "index"), awkward...)
	writeFile(t, filepath.Join(dir, "bloom"), "of a BloomMapFile")
	if r := sequins(t, "verify", dir); r.stdout != "good: 1 file with 7 records\n" {
		t.Errorf("said %q, %q", r.stdout, r.stderr)
	}
}

func TestVerifyFixtures(t *testing.T) {
	r := sequins(t, "verify", harness.FixturesDir(t))
	r.wants(t, exitOK)
	if !strings.HasPrefix(r.stdout, "good: ") || !strings.HasSuffix(r.stdout, " records\n") {
		t.Errorf("said %q", r.stdout)
	}
}

// One bit is flipped in the middle of a page, and in a compressed block of records.
func TestVerifyNamesWhatIsBad(t *testing.T) {
	block, sequence, log := makeFiles(t)
	spoil(t, block, 40)
	spoil(t, sequence, 600)
	r := sequins(t, "verify", filepath.Dir(block))
	r.wants(t, exitUnreadable, "bad: "+block, "bad: "+sequence, "sequins: 2 of 3 files are bad")
	if !strings.Contains(r.stderr, "page 0") {
		t.Errorf("the page is not named:\n%s", r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("said %q", r.stdout)
	}
	info, err := os.Stat(log)
	expect.NoError(t, err)
	expect.NoError(t, os.Truncate(log, info.Size()-1))
	sequins(t, "verify", log).wants(t, exitUnreadable, "bad: "+log, "sequins: 1 of 1 files are bad")
	sequins(t, "cat", block).wants(t, exitUnreadable, "sequins: "+block)
	sequins(t, "cat", log).wants(t, exitUnreadable, "sequins: "+log)
}

// A file whose header is destroyed is bad, also in a directory. Files that are known to have no records are skipped, and one of
// 0 bytes is good, as for a load.
func TestVerifyOfADestroyedHead(t *testing.T) {
	block, sequence, log := makeFiles(t)
	dir := filepath.Dir(block)
	for _, name := range []string{"_SUCCESS", ".part-00000.crc", "x/part-0.spi", "x/part-0.spi.sz", "MANIFEST.json", "STATE.json", "MANIFEST.json.7.tmp", "STATE.json.7.tmp", "self_assigned_id", "sequins.lock", "00000.block.7.tmp", "00001.block.corrupt"} {
		writeFile(t, filepath.Join(dir, name), "no records")
	}
	r := sequins(t, "verify", dir)
	r.wants(t, exitOK)
	if want := "good: 3 files with 23 records\n"; r.stdout != want {
		t.Errorf("said %q, want %q", r.stdout, want)
	}
	spoil(t, sequence, 0)
	spoil(t, log, 1)
	writeFile(t, filepath.Join(dir, "empty"), "")
	writeFile(t, filepath.Join(dir, "z.crc"), "a load reads it") // Hadoop's own are hidden
	sequins(t, "verify", dir).wants(t, exitUnreadable, "bad: "+sequence+" is neither",
		"bad: "+log+": at offset 0: ", "bad: "+filepath.Join(dir, "z.crc")+" is neither", "sequins: 3 of 5 files are bad")
}

func spoil(t *testing.T, path string, offset int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	expect.NoError(t, err)
	raw[offset] ^= 1
	writeFile(t, path, string(raw))
}

// A configuration that is missing is not a file of the source that is.
func TestFilesWithoutTheirConfiguration(t *testing.T) {
	block, _, _ := makeFiles(t)
	for _, args := range [][]string{{"cat", block}, {"verify", "s3://bucket/db/1"}, {"verify", filepath.Dir(block)}} {
		if r := sequins(t, append(args, "--config", "/nowhere.conf")...); r.code != exitFailure || !strings.Contains(r.stderr, "/nowhere.conf") {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}

func TestVerifyOfNothing(t *testing.T) {
	dir := t.TempDir()
	sequins(t, "verify", dir).wants(t, exitAbsent, "sequins: found no blocks and no data files")
	alien := filepath.Join(dir, "alien")
	writeFile(t, alien, "hello")
	sequins(t, "verify", alien).wants(t, exitUnreadable, "bad: "+alien+" is neither a block", "sequins: 1 of 1 files are bad")
	sequins(t, "verify", filepath.Join(dir, "none")).wants(t, exitAbsent, "bad: ", "sequins: 1 of 1 files are bad")
}
