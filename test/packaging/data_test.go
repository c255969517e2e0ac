//go:build integration

package packaging

import (
	"math/rand/v2"
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
	c := process.NewClient(addr)
	defer c.Close()
	process.Eventually(t, "the word is served", func() bool {
		r, err := c.Get("/words/apple")
		return err == nil && string(r.Body) == "a fruit"
	})
}
