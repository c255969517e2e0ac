//go:build integration

package manual

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/server/auth"
	"sequins/test/expect"
)

// The commands of the chapter on tokens create a token that a node accepts in the form in which they send it.
func TestTokens(t *testing.T) {
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { sent = r.Header.Get("Authorization") }))
	defer s.Close()
	dir := t.TempDir()
	all := Blocks(chapter(t, "SECURITY.md", "Tokens"))
	if len(all) != 2 {
		t.Fatalf("%d blocks of commands", len(all))
	}
	for _, b := range all {
		cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", strings.ReplaceAll(b.Text, "http://localhost:9599", s.URL))
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%v\n%s\nprinted\n%s", err, b.Text, out)
		}
	}
	tokens, err := auth.Open(filepath.Join(dir, "tokens"))
	expect.NoError(t, err)
	g, _ := tokens.Find([]byte(sent))
	if g == nil || g.Name != "web" || !g.Reads([]byte("users")) || g.Reads([]byte("words")) || g.Pages {
		t.Errorf("%q is %+v", sent, g)
	}
	if err := tokens.Exposed(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "web.token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info.Mode(), err)
	}
}
