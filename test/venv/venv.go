// Package venv makes Python interpreters with pinned packages for tests.
package venv

import (
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/once"
	"sequins/test/process"
)

// Python returns the interpreter of a venv with the packages of a requirements file, which is made once and kept in .cache.
func Python(t testing.TB, requirements string) string {
	t.Helper()
	cache := filepath.Join(process.Root(), ".cache")
	dir, err := once.Dir(filepath.Join(cache, "python"), func(dir string) error {
		// One for all: to install it takes longer than the rest of a venv.
		pip, err := once.Dir(filepath.Join(cache, "pip"), func(dir string) error {
			process.OutputOf(t, "python3", "-m", "venv", dir)
			return nil
		})
		if err != nil {
			return err
		}
		process.OutputOf(t, "python3", "-m", "venv", "--without-pip", dir)
		// A module is compiled when it is imported. Most are not.
		process.OutputOf(t, filepath.Join(pip, "bin", "python"), "-m", "pip", "--python", filepath.Join(dir, "bin", "python"), "install", "-q",
			"--disable-pip-version-check", "--no-compile", "--only-binary=:all:", "--no-deps", "-r", requirements)
		return nil
	}, requirements)
	expect.NoError(t, err)
	return filepath.Join(dir, "bin", "python")
}
