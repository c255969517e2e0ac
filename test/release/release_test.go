//go:build integration

package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/packaging"
	"sequins/test/process"
)

// The release that the tests look at has a tag. Nothing of the programs needs to be unpacked twice.
var (
	dist     string                // the files of the release
	programs = map[string]string{} // the program for each system, as in "linux-arm64"
)

const tag, version = "v7.8.9", "7.8.9"

var systems = []string{"darwin-arm64", "linux-amd64", "linux-arm64"}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	_ = os.Setenv("SEQUINS_SETTLE", "0s") // what nodes serve has been there before
	dir, err := os.MkdirTemp("", "sequins-release-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	source := filepath.Join(dir, "source")
	if err := checkout(source); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dist = filepath.Join(dir, "dist")
	if out, err := makeRelease(source, dist); err != nil {
		fmt.Fprintf(os.Stderr, "make release: %v\n%s", err, out)
		return 1
	}
	for _, system := range systems {
		base := fmt.Sprintf("sequins-%s-%s", version, system)
		if out, err := exec.Command("tar", "-C", dir, "-xzf", filepath.Join(dist, base+".tar.gz")).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", base, err, out)
			return 1
		}
		programs[system] = filepath.Join(dir, base, "sequins")
	}
	return m.Run()
}

// checkout makes a repository with the files of this one as they are now, in a commit that is the same wherever and whenever it
// is made, with the tag. Its changelog has a section for it.
func checkout(dir string) error {
	script := `
		mkdir -p "$1"
		git -C "$2" ls-files -z --cached --others --exclude-standard | (cd "$2" && xargs -0 ls -d -- 2>/dev/null) | tar -C "$2" -cf - -T - | tar -C "$1" -xf -
		cd "$1"
		sed -i "s/^## \[Unreleased\]$/## [Unreleased]\n\n## [$4] - 2026-01-31/" CHANGELOG.md
		git init -q -b main
		git add --all
		git -c user.name=a -c user.email=a@example.com commit -q -m release
		git tag "$3"`
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script, "checkout", dir, process.Root(), tag, version)
	const at = "2026-01-31T12:00:00Z"
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", dir, err, out)
	}
	return nil
}

// makeRelease runs make release as a maintainer does, with further variables of the environment. The tools that make would
// install are those of this repository.
func makeRelease(source, dist string, env ...string) (string, error) {
	if err := os.MkdirAll(filepath.Join(source, ".cache"), 0o755); err != nil {
		return "", err
	}
	tools, err := filepath.Glob(filepath.Join(process.Root(), ".cache", "*-v*"))
	if err != nil {
		return "", err
	}
	for _, tool := range tools {
		if err := os.Symlink(tool, filepath.Join(source, ".cache", filepath.Base(tool))); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("make", "-C", source, "release", "DIST="+dist)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") }), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A release has these files, with the sums that sha256sum finds.
func TestFiles(t *testing.T) {
	want := []string{"SHA256SUMS", "sequins-7.8.9-1.aarch64.rpm", "sequins-7.8.9-1.x86_64.rpm",
		"sequins-7.8.9-darwin-arm64.cdx.json", "sequins-7.8.9-darwin-arm64.tar.gz",
		"sequins-7.8.9-image.tar", "sequins-7.8.9-linux-amd64.cdx.json", "sequins-7.8.9-linux-amd64.tar.gz", "sequins-7.8.9-linux-arm64.cdx.json",
		"sequins-7.8.9-linux-arm64.tar.gz", "sequins-7.8.9-notes.md", "sequins_7.8.9_amd64.deb", "sequins_7.8.9_arm64.deb"}
	if got := names(t, dist); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	checked := process.OutputOf(t, "bash", "-c", `cd "$1" && sha256sum --strict --check SHA256SUMS`, "check", dist)
	if n := strings.Count(checked, ": OK\n"); n != len(want)-1 {
		t.Errorf("%d files are in SHA256SUMS:\n%s", n, checked)
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Somebody else, elsewhere, with other settings and other times of the files, gets the same bytes. make image makes the image of
// the release.
func TestReproducible(t *testing.T) {
	dir := t.TempDir()
	source, again := filepath.Join(dir, "another", "directory of sources"), filepath.Join(dir, "again")
	expect.NoError(t, checkout(source))
	process.OutputOf(t, "find", source, "-not", "-path", "*/.git/*", "-type", "f", "-exec", "touch", "-d", "2020-02-02T02:02:02Z", "{}", "+")
	process.OutputOf(t, "chmod", "-R", "go-rwx", source)
	out, err := makeRelease(source, again, "TZ=Asia/Kolkata", "LC_ALL=C.UTF-8", "LANG=C.UTF-8", "GOAMD64=v2", "GOFLAGS=-tags=other", "USER=other", "GZIP=-1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if a, b := names(t, dist), names(t, again); !slices.Equal(a, b) {
		t.Fatalf("the files are %q and %q", a, b)
	}
	for _, name := range names(t, dist) {
		expectEqual(t, filepath.Join(dist, name), filepath.Join(again, name))
	}
	image := filepath.Join(dir, "image")
	process.OutputOf(t, "env", "-u", "MAKEFLAGS", "make", "-C", source, "image", "DIST="+image)
	expectEqual(t, imageFile(), filepath.Join(image, filepath.Base(imageFile())))
}

func expectEqual(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	expect.NoError(t, err)
	b, err := os.ReadFile(other)
	expect.NoError(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("%s differs: %d and %d bytes", filepath.Base(one), len(a), len(b))
	}
}

// Nothing in a release tells where it was built.
func TestNoPaths(t *testing.T) {
	for system, program := range programs {
		b, err := os.ReadFile(program)
		expect.NoError(t, err)
		if at := bytes.Index(b, []byte(filepath.Dir(dist))); at >= 0 {
			t.Errorf("%s: at %d it has %q", system, at, b[at:at+80])
		}
	}
}

// The notes are the part of the changelog; and a version that it has nothing about cannot be released.
func TestNotes(t *testing.T) {
	notes, err := os.ReadFile(filepath.Join(dist, "sequins-7.8.9-notes.md"))
	expect.NoError(t, err)
	changelog, err := os.ReadFile(filepath.Join(process.Root(), "CHANGELOG.md"))
	expect.NoError(t, err)
	_, want, _ := strings.Cut(string(changelog), "\n## [Unreleased]\n")
	want, _, _ = strings.Cut(want, "\n## [")
	if strings.TrimSpace(string(notes)) != strings.TrimSpace(want) {
		t.Errorf("the notes are\n%.500s", notes)
	}
	out, err := exec.Command(filepath.Join(process.Root(), "packaging", "notes.sh"), "v123.4.5").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "CHANGELOG.md has nothing under [123.4.5]") {
		t.Errorf("%v: %s", err, out)
	}
}

// An archive has what belongs to the program, in one directory, with links that lead somewhere.
func TestArchives(t *testing.T) {
	for system, program := range programs {
		dir := filepath.Dir(program)
		for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES", "README.md", "CHANGELOG.md", "sequins.conf.example", "man/sequins.1.gz",
			"completion/sequins.bash", "completion/_sequins", "docs/QUICKSTART.md", "packaging/contrib/prometheus/alerts.yml"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", system, name, err)
			}
		}
		packaging.CheckLinks(t, dir)
	}
}
