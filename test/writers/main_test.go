//go:build integration

package writers

import (
	"os"
	"testing"

	"sequins/test/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.RemoveBinary()
	os.RemoveAll(sparks.dir)
	os.Exit(code)
}
