//go:build integration

package clients

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/shard"
	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
}

// drive runs drive.py with keys, and returns the lines that it prints.
func drive(t *testing.T, keys [][]byte, args ...string) []string {
	t.Helper()
	var in, out, stderr bytes.Buffer
	for _, key := range keys {
		fmt.Fprintln(&in, hex.EncodeToString(key))
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join(process.Root(), "test", "clients", "drive.py")}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("drive.py %q: %v\n%s", args, err, &stderr)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// randomKeys returns different keys of several kinds: ASCII, text of several scripts, UTF-8 that is damaged, and bytes.
func randomKeys(n int) (keys [][]byte) {
	seen := map[string]bool{}
	for len(keys) < n {
		key := randomKey()
		if !seen[string(key)] && len(key) > 0 {
			seen[string(key)] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func randomKey() []byte {
	length := 1 + rand.IntN(40)
	var b []byte
	kind := rand.IntN(4)
	for len(b) < length {
		switch kind {
		case 0:
			b = append(b, byte(' '+rand.IntN(95)))
		case 1:
			b = append(b, string([]rune("aéжह漢😀\U0010ffff")[rand.IntN(7)])...)
		case 2: // the bytes at which decoders of UTF-8 differ
			b = append(b, "a\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xe0\xe2\xed\xef\xf0\xf3\xf4\xf5\xff"[rand.IntN(18)])
		default:
			b = append(b, byte(rand.IntN(256)))
		}
	}
	return b
}

// valueOf is the value of a key in the tests' versions.
func valueOf(version string, key []byte) string { return version + "/" + string(key) + "/\x00\xff" }

// writeVersion writes a version of keys in the files of a job with a partitioner.
func writeVersion(t *testing.T, source, db, version string, p shard.Partitioner, files int, keys [][]byte) {
	t.Helper()
	tmp := filepath.Join(source, db, "_"+version)
	sequencefiles.WriteParts(t, tmp, files, p.Partition, func(add func(key, value string)) {
		for _, key := range keys {
			add(string(key), valueOf(version, key))
		}
	})
	expect.NoError(t, os.Rename(tmp, filepath.Join(source, db, version)))
}
