//go:build integration

package writers

import (
	"os"
	"testing"

	"sequins/test/process"
)

func TestMain(m *testing.M) {
	m.Run()
	process.RemoveBinary()
	os.RemoveAll(sparks.dir)
}
