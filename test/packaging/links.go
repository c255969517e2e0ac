package packaging

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is the target of a link or a picture of Markdown or HTML, without its anchor.
var link = regexp.MustCompile(`(?:\]\(|(?:src|srcset|href)=")([^)"#\s]+)(?:#[^)"]*)?[)"]`)

// CheckLinks checks that whoever reads the documentation below a directory can follow its links to other files.
func CheckLinks(t *testing.T, dir string) {
	t.Helper()
	followed := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		doc, err := os.ReadFile(path)
		for _, m := range link.FindAllStringSubmatch(string(doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", strings.TrimPrefix(path, dir), err)
			}
		}
		return err
	})
	if err != nil || followed < 100 {
		t.Errorf("%s: %d links, %v", dir, followed, err)
	}
}
