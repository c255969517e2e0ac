//go:build integration

package writers

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// sequins runs a command and returns its exit code and what it prints.
func sequins(t *testing.T, args ...string) (code int, out []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.Binary(t), args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out
}

// The commands for files show the contents that pyarrow, DuckDB and fastavro read.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	process.OutputOf(t, venv.Python(t, "requirements.txt"), "judge.py", dir)
	judgements, err := filepath.Glob(filepath.Join(dir, "words.*.*.*"))
	if err != nil || len(judgements) != 15 {
		t.Fatalf("%d judgements, %v", len(judgements), err)
	}
	for _, judgement := range judgements {
		want, err := os.ReadFile(judgement)
		expect.NoError(t, err)
		parts := strings.Split(filepath.Base(judgement), ".") // words.parquet.duckdb.meaning
		path, field := filepath.Join(dir, parts[0]+"."+parts[1]), parts[3]
		if code, got := sequins(t, "cat", "--key", "word", "--value", field, path); code != 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: exit code %d, %d bytes, want %d: %.200s, want %.200s", filepath.Base(judgement), code, len(got), len(want), got, want)
		}
	}
	for _, name := range []string{"words.parquet", "words.avro"} {
		path := filepath.Join(dir, name)
		if code, got := sequins(t, "verify", path); code != 0 || string(got) != "good: 1 file with 2500 records\n" {
			t.Errorf("verify %s: exit code %d, %s", name, code, got)
		}
		if code, got := sequins(t, "verify", "--key", "meaning", path); code != 6 || !strings.Contains(string(got), "the key is null: meaning; a load leaves out this record and 357 others") {
			t.Errorf("verify %s by a key that is null: exit code %d, %s", name, code, got)
		}
		raw, err := os.ReadFile(path)
		expect.NoError(t, err)
		raw[len(raw)/2] ^= 1
		expect.NoError(t, os.WriteFile(path, raw, 0o600))
		if code, got := sequins(t, "verify", path); code != 6 || !strings.Contains(string(got), "bad: "+path) {
			t.Errorf("verify %s with a flipped bit: exit code %d, %s", name, code, got)
		}
	}
}
