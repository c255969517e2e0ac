//go:build integration

package hdfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/internal/human"
	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
)

// testFiles: verify reads versions in HDFS.
func testFiles(t *testing.T, c *cluster) {
	d := c.newDir()
	base := "hdfs://" + c.namenode + d.root + "/"
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	expect.NoError(t, os.WriteFile(conf, []byte("source = \"/none\"\n"), 0o600))
	t.Setenv("HADOOP_USER_NAME", superuser)
	command := func(args ...string) (code int, stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		cmd := exec.CommandContext(t.Context(), process.Binary(t), args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String(), errs.String()
	}
	for _, name := range []string{"text-block-snappy", "avro-deflate", "parquet-snappy", "mapfile-none"} {
		f := harness.FixtureByName(t, name)
		for _, file := range f.Meta.Names {
			raw, err := os.ReadFile(filepath.Join(f.Dir, file))
			expect.NoError(t, err)
			d.Put(t, name+"/1/"+file, raw)
		}
		var fields []string
		if f.Meta.KeyField != "" {
			fields = []string{"--key", f.Meta.KeyField}
		}
		code, out, errs := command(append(fields, "verify", "--config", conf, base+name+"/1")...)
		if want := fmt.Sprintf("good: %s with %d records\n", human.Plural(f.Meta.Files, "file"), f.Meta.Records); code != 0 || out != want {
			t.Errorf("verify of %s: exit code %d, %s%s, want %s", name, code, out, errs, want)
		}
	}
	for _, test := range []struct {
		code int
		path string
	}{{3, base + "text-block-snappy/none"}, {3, base + "text-block-snappy/1/part-r-00000"}, {3, base + "none/1"}} {
		if code, _, errs := command("verify", "--config", conf, test.path); code != test.code {
			t.Errorf("verify %s: exit code %d, want %d: %s", test.path, code, test.code, errs)
		}
	}
}
