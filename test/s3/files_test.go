//go:build integration

package s3

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/internal/human"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/harness"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// command runs a command of sequins and returns its exit code and what it prints.
func command(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), process.Binary(t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &errs
	cmd.Env = append(os.Environ(), env...)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Versions of a bucket are verified by each of its schemes, with credentials of a configuration or of the environment.
func TestVersionsOfABucket(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	c := configure(t, g.Endpoint(), gateway.SecretKey)
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	expect.NoError(t, os.WriteFile(conf, []byte("source = \"/none\"\n"+c.Sections+"[db.avro-null]\nkey = \"id\"\n"), 0o600))
	byEnvironment := []string{
		"SEQUINS_S3_ENDPOINT=" + g.Endpoint(), "SEQUINS_S3_PATH_STYLE=true", "SEQUINS_S3_REGION=" + gateway.Region,
		"AWS_ACCESS_KEY_ID=" + gateway.AccessKey, "AWS_SECRET_ACCESS_KEY=" + gateway.SecretKey,
	}
	root := "://" + gateway.Bucket + "/jobs/output/"
	for i, name := range []string{"text-block-snappy", "sparkey-snappy", "avro-snappy", "parquet-zstd"} {
		f := harness.FixtureByName(t, name)
		version := name + "/" + f.Meta.Version
		g.PutTree(t, "jobs/output/"+version, f.Dir)
		scheme := []string{"s3", "s3a", "s3n"}[i%3]
		var fields []string
		if f.Meta.KeyField != "" {
			fields = append(fields, "--key", f.Meta.KeyField)
			if f.Meta.ValueField != "" {
				fields = append(fields, "--value", f.Meta.ValueField)
			}
		}
		for _, how := range []struct{ env, flags []string }{{nil, []string{"--config", conf}}, {byEnvironment, nil}} {
			all := append(append(append([]string{"verify"}, how.flags...), fields...), scheme+root+version)
			code, out, errs := command(t, how.env, all...)
			if want := fmt.Sprintf("good: %s with %d records\n", human.Plural(f.Meta.Files, "file"), f.Meta.Records); code != 0 || out != want {
				t.Errorf("%v: exit code %d, %s%s, want %s", all, code, out, errs, want)
			}
		}
	}
}

// Finished blocks in a bucket are read and verified.
func TestBlocksOfABucket(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	c := configure(t, g.Endpoint(), gateway.SecretKey)
	conf := filepath.Join(t.TempDir(), "sequins.conf")
	expect.NoError(t, os.WriteFile(conf, []byte("source = \"/none\"\n"+c.Sections), 0o600))
	from, built := filepath.Join(t.TempDir(), "large", "1"), filepath.Join(t.TempDir(), "large", "1")
	sequencefiles.WriteFile(t, filepath.Join(from, "part-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		value, rng := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
		for i := range 4 {
			_, _ = rng.Read(value)
			add(fmt.Sprintf("key-%02d", i), string(value))
		}
	})
	if code, out, errs := command(t, []string{"SEQUINS_SETTLE=0s"}, "build", "--config", conf, from, built); code != 0 {
		t.Fatalf("build: exit code %d, %s%s", code, out, errs)
	}
	g.PutTree(t, "jobs/output/large/1", built)
	base := "s3://" + gateway.Bucket + "/jobs/output/large/1"
	code, out, errs := command(t, nil, "verify", "--config", conf, base)
	if code != 0 || out != "good: 1 file with 4 records\n" {
		t.Errorf("verify: exit code %d, %s%s", code, out, errs)
	}
	// Damage is found by the checksums.
	g.Put(t, "jobs/output/large/1/part-00000.block", []byte("no block"))
	if code, _, errs = command(t, nil, "verify", "--config", conf, base); code != 6 || !strings.Contains(errs, "bad: "+base+"/part-00000.block") {
		t.Errorf("verify of a damaged block: exit code %d, %s", code, errs)
	}
}

// What is wrong with a file or with the source decides the exit code.
func TestErrorsOfABucket(t *testing.T) {
	t.Parallel()
	g := gateway.Start(t)
	upload(t, g, "db", "1", 1, 10)
	conf := func(endpoint, secret string) string {
		path := filepath.Join(t.TempDir(), "sequins.conf")
		expect.NoError(t, os.WriteFile(path, []byte("source = \"/none\"\n"+configure(t, endpoint, secret).Sections), 0o600))
		return path
	}
	good, refused, away := conf(g.Endpoint(), gateway.SecretKey), conf(g.Endpoint(), "not-the-secret"), conf("http://127.0.0.1:1", gateway.SecretKey)
	base := "s3://" + gateway.Bucket + "/jobs/output/"
	for i, test := range []struct {
		code int
		want string
		args []string
	}{
		{0, "", []string{"verify", "--config", good, base + "db/1"}},
		{3, "", []string{"verify", "--config", good, base + "db/9"}},
		{3, "", []string{"verify", "--config", good, base + "db/1/part-r-00000"}},
		{6, "permission denied", []string{"verify", "--config", refused, base + "db/1"}},
		{5, "", []string{"verify", "--config", away, base + "db/1"}},
		{2, "is not a version in a source: <source>/<db>/<version>", []string{"verify", "--config", good, "s3://" + gateway.Bucket}},
		{2, "is not a file of this machine", []string{"cat", "--config", good, base + "db/1/part-r-00000"}},
		{5, "", []string{"versions", "--config", away, "--source", base}},
		{6, "permission denied", []string{"versions", "--config", refused, "--source", base}},
	} {
		t.Run(fmt.Sprint(i, " ", test.args[0]), func(t *testing.T) {
			t.Parallel()
			code, _, errs := command(t, nil, test.args...)
			if code != test.code || !strings.Contains(errs, test.want) || (errs == "") != (code == 0) || strings.Contains(errs, "not-the-secret") {
				t.Errorf("%v: exit code %d, %s", test.args, code, errs)
			}
		})
	}
}
