// Package chart tests the Helm chart (packaging/helm/sequins): what it renders and refuses, that Kubernetes accepts its
// objects, and that the schema, the table and the manifests that are made from it are up to date. It renders the chart for
// other tests, too.
package chart

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"sequins/test/process"
)

// Dir returns the directory of the chart.
func Dir() string { return filepath.Join(process.Root(), "packaging", "helm", "sequins") }

// Helm returns the path of the pinned release of Helm, which the Makefile builds.
var Helm = sync.OnceValues(func() (string, error) {
	out, err := run("make", "-s", "--no-print-directory", "-C", process.Root(), "helm")
	return filepath.Join(process.Root(), strings.TrimSpace(out)), err
})

// Template renders the chart for a release, with arguments of helm template.
func Template(release string, args ...string) (string, error) {
	helm, err := Helm()
	if err != nil {
		return "", err
	}
	return run(helm, append([]string{"template", release, Dir(), "--namespace", "example"}, args...)...)
}

func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &said)
	}
	return out.String(), nil
}
