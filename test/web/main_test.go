//go:build integration

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
	"sequins/test/venv"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// largeSize is the size of the value of the key "large".
const largeSize = 300_000

// start starts a node with some words and the key "large", and with sections of its configuration.
func start(t *testing.T, sections string) *process.Node {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	records := map[string]string{"large": strings.Repeat("x", largeSize), "small": "a small value"}
	for i := range 200 {
		records[fmt.Sprintf("word-%03d", i)] = fmt.Sprintf("the value of word %d", i)
	}
	writeVersion(t, filepath.Join(source, "words", "1"), records)
	n := process.Start(t, process.Config{Source: source, Store: filepath.Join(dir, "store"), Extra: "refresh_period = \"200ms\"", Sections: sections})
	n.WaitFor(t, "it is ready", func() bool { r, err := n.TryGet("/readyz"); return err == nil && r.Code == 200 })
	return n
}

// writeVersion writes a version of one file under a temporary name, and renames it.
func writeVersion(t *testing.T, path string, records map[string]string) {
	t.Helper()
	tmp := filepath.Join(filepath.Dir(path), "_"+filepath.Base(path))
	sequencefiles.WriteFile(t, filepath.Join(tmp, "part-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for key, value := range records {
			add(key, value)
		}
	})

	expect.NoError(t, os.Rename(tmp, path))
}

// judge runs judge.py with a line of JSON for each input, and returns the lines that it prints.
func judge(t *testing.T, inputs []any, args ...string) []string {
	t.Helper()
	var in, out, stderr bytes.Buffer
	for _, input := range inputs {
		expect.NoError(t, json.NewEncoder(&in).Encode(input))
	}
	cmd := exec.CommandContext(t.Context(), venv.Python(t, "requirements.txt"), append([]string{"judge.py"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("judge.py %q: %v\n%s", args, err, &stderr)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}
