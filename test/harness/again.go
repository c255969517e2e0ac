package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sequins/test/netns"
	"sequins/test/process"
)

// Again runs this test program with the same arguments in a network of its own, and returns its exit code. What may have to be fetched
// from outside is built before: sequins and the Java program.
func Again() int {
	dir, err := os.MkdirTemp("", "sequins-binary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := os.Getenv(process.Override)
	if binary == "" {
		binary = filepath.Join(dir, "sequins")
		err = process.Build(binary)
	}
	if err = errors.Join(err, build(filepath.Join(testdata(), "harness"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return netns.Again(process.Override + "=" + binary)
}
