//go:build integration

package corpus

import (
	"bytes"
	"flag"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
	"sequins/test/venv"
)

var folder = flag.String("folder", filepath.Join(process.Root(), "testdata", "fixtures"), "the folder of Parquet and Avro files")

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// Every file is read as its judges read it, is an error for them too, or is named in the table of known differences.
func TestCorpus(t *testing.T) {
	java, err := harness.Java(t.Context(), "Judge.java")
	expect.NoError(t, err)
	python := venv.Python(t, filepath.Join("..", "writers", "requirements.txt"))
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "corpus.py", process.Binary(t), "'"+strings.Join(java.Args, "' '")+"'", *folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.Bytes())
	}
	if !bytes.Contains(out, []byte("exact\t")) {
		t.Error("no file is exact: the test tests nothing")
	}
}
