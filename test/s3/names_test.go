//go:build integration

package s3

import (
	"strings"
	"testing"

	"sequins/test/gateway"
	"sequins/test/process"
)

// TestPunctuatedNames uploads versions whose names have all characters of names, one of them as a link.
func TestPunctuatedNames(t *testing.T) {
	t.Parallel()
	const db = "day=1+2,3@4:5"
	g := gateway.Start(t)
	c := configure(t, g.Endpoint(), gateway.SecretKey)
	c.Source = "s3a" + strings.TrimPrefix(c.Source, "s3") // as Hadoop calls it
	n := process.Start(t, c)
	for _, version := range []string{"a+b", "a,b", "a:b", "a@b", "dt=2026-01-31", "run@2026-01-31T10:00:00+01:00,a=b"} {
		upload(t, g, db, version, 2, 100)
		n.WaitCurrent(t, db, version)
		n.ExpectKeys(t, db, version, version, 100)
	}
	g.Put(t, "jobs/output/"+db+"/x+y/_SYMLINK", []byte("a+b\n"))
	n.WaitCurrent(t, db, "x+y")
	n.ExpectKeys(t, db, "x+y", "a+b", 100)
}
