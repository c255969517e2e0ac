//go:build integration

package packaging

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// writeWords puts a database of one word below a source.
func writeWords(t *testing.T, source string) {
	t.Helper()
	dir := filepath.Join(source, "words", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "part-00000"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 200<<10) // so that the block is one that is mapped
	rnd := rand.NewChaCha8([32]byte{})
	_, _ = rnd.Read(large) // never fails
	if err := errors.Join(w.Append([]byte("apple"), []byte("a fruit")), w.Append([]byte("large"), large), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// expectWord asks a node for the word until it is served.
func expectWord(t *testing.T, addr string) {
	t.Helper()
	process.Eventually(t, "the word is served", func() bool {
		resp, err := http.Get("http://" + addr + "/words/apple")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && string(body) == "a fruit"
	})
}
