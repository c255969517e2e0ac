package loadproc

import (
	"fmt"
	"strings"
)

// keptWords is how many bytes of the output are kept. A Go program reports the reason of a crash at the beginning.
const keptWords = 4 << 10

// lastWords keeps the beginning of what is written to it.
type lastWords struct{ kept []byte }

func (w *lastWords) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p[:min(len(p), keptWords-len(w.kept))]...)
	return len(p), nil
}

// quote returns the output as the end of an error, "" if there was none.
func (w *lastWords) quote() string {
	said := strings.TrimSpace(strings.ToValidUTF8(string(w.kept), "?"))
	if said == "" {
		return ""
	}
	if crash, _, _ := strings.Cut(said, "\n"); strings.HasPrefix(crash, "fatal error:") && strings.Contains(crash, "out of memory") {
		return "; out of memory: it needs more than [load] memory_limit"
	}
	return fmt.Sprintf("; its last words: %s", said)
}
