//go:build integration

package web

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
	"sequins/test/venv"
)

// schemathesis makes requests from the description that a node serves: all answers are as described, none is a failure of the node,
// and none is given without the token.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	const token = "the-token-of-schemathesis"
	tokens := filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(tokens, []byte("all "+token+" * pages\n"), 0o600))
	n := start(t, compressing+"allowed_origins = [\"https://app.example\"]\ncache_control = \"max-age=60\"\n"+
		fmt.Sprintf("[auth]\ntokens_file = %q\n", tokens))
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(venv.Python(t, "requirements.txt")), "schemathesis"), "--config-file", filepath.Join(process.Root(), "test", "web", "schemathesis.toml"),
		"run", "http://"+n.Addr+"/-/openapi.yaml", "--url", "http://"+n.Addr, "-H", "Authorization: Bearer "+token,
		"--phases", "examples,coverage,fuzzing", "--max-examples", "50", "--seed", "1", "--no-color")
	cmd.Env = append(os.Environ(), "HYPOTHESIS_STORAGE_DIRECTORY="+t.TempDir())
	cmd.Dir = t.TempDir() // where it leaves files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
