// Package venv makes Python interpreters with pinned packages for tests.
package venv

import (
	"path/filepath"
	"testing"

	"sequins/test/expect"
	"sequins/test/once"
	"sequins/test/process"
)

// uv installs in a fifth of pip's processor time.
const uv = "uv==0.13.9"

// Python returns the interpreter of a venv with the packages of a requirements file, which is made once and kept in .cache.
func Python(t testing.TB, requirements string) string {
	t.Helper()
	cache := filepath.Join(process.Root(), ".cache")
	dir, err := once.Dir(filepath.Join(cache, "python"), func(dir string) error {
		installer, err := once.Dir(filepath.Join(cache, uv), func(dir string) error {
			process.OutputOf(t, "python3", "-m", "venv", dir)
			process.OutputOf(t, filepath.Join(dir, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "--no-compile", uv)
			return nil
		})
		if err != nil {
			return err
		}
		process.OutputOf(t, "python3", "-m", "venv", "--without-pip", dir)
		process.OutputOf(t, filepath.Join(installer, "bin", "uv"), "pip", "install", "-q", "--system-certs", "--python", filepath.Join(dir, "bin", "python"),
			"--only-binary", ":all:", "--no-deps", "-r", requirements)
		return nil
	}, requirements)
	expect.NoError(t, err)
	return filepath.Join(dir, "bin", "python")
}
