//go:build integration

package packaging

import (
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"testing"

	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// writeWords puts a database of one word below a source.
func writeWords(t *testing.T, source string) {
	t.Helper()
	large := make([]byte, 200<<10) // so that the block is one that is mapped
	rnd := rand.NewChaCha8([32]byte{})
	_, _ = rnd.Read(large) // never fails
	sequencefiles.WriteFile(t, filepath.Join(source, "words", "1", "part-00000"), sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		add("apple", "a fruit")
		add("large", string(large))
	})

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
