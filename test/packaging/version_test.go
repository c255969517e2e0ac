//go:build integration

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// repository is a repository of git with packaging/version.sh.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	script, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "version.sh"))
	expect.NoError(t, err)
	expect.NoError(t, os.WriteFile(filepath.Join(r.dir, "version.sh"), script, 0o755))
	r.git("2026-01-31T12:00:00Z", "init", "-q", "-b", "main")
	return r
}

// git runs a command at a time.
func (r repository) git(at string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+at, "GIT_COMMITTER_DATE="+at, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// version commits, and returns the version of the packages of the commit.
func (r repository) version(at string) string {
	r.t.Helper()
	r.git(at, "commit", "-q", "--allow-empty", "-m", "a commit at "+at)
	return r.described()
}

func (r repository) described() string {
	r.t.Helper()
	return strings.TrimSpace(process.OutputOf(r.t, filepath.Join(r.dir, "version.sh"), r.git("2026-01-31T12:00:00Z", "describe", "--tags", "--always", "--dirty")))
}

// Packages are ordered as commits are: also commits of one second, with times that go back, and of merged branches; and a tag is above all
// commits before it.
func TestVersionsAreOrdered(t *testing.T) {
	r := newRepository(t)
	var versions []string
	for _, at := range []string{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-30T12:00:00Z", "2026-02-01T00:00:00Z"} {
		versions = append(versions, r.version(at))
	}
	r.git("2026-02-02T00:00:00Z", "checkout", "-q", "-b", "side", "HEAD~2")
	side := r.version("2026-02-03T00:00:00Z")
	r.git("2026-02-02T00:00:00Z", "checkout", "-q", "main")
	r.git("2026-02-02T00:00:00Z", "merge", "-q", "--no-ff", "-m", "merge", "side")
	merged := r.described()
	ordered(t, []string{side, merged})
	versions = append(versions, merged)
	for range 11 { // from one digit to two
		versions = append(versions, r.version("2026-02-02T00:00:00Z"))
	}
	expect.NoError(t, os.WriteFile(filepath.Join(r.dir, "version"), nil, 0o644))
	r.git("2026-02-02T00:00:00Z", "add", "version")
	versions = append(versions, r.described()) // a working tree with changes
	for _, tag := range []string{"v0.1.0-rc1", "v0.1.0-rc2", "v0.1.0"} {
		versions = append(versions, r.taggedAfter(tag)...)
	}
	ordered(t, versions)
}

// taggedAfter tags a new commit, and returns its version and those of eleven commits after it.
func (r repository) taggedAfter(tag string) (versions []string) {
	r.t.Helper()
	const at = "2026-02-02T00:00:00Z"
	r.git(at, "commit", "-q", "--allow-empty", "-m", tag)
	r.git(at, "tag", tag)
	versions = append(versions, strings.TrimSpace(process.OutputOf(r.t, filepath.Join(r.dir, "version.sh"), tag)))
	for range 11 {
		r.git(at, "commit", "-q", "--allow-empty", "-m", "after "+tag)
		versions = append(versions, strings.TrimSpace(process.OutputOf(r.t, filepath.Join(r.dir, "version.sh"), r.git(at, "describe", "--tags"))))
	}
	return versions
}

// ordered checks that dpkg and rpm take each version for newer than the one before.
func ordered(t *testing.T, versions []string) {
	t.Helper()
	for i := 1; i < len(versions); i++ {
		older, newer := versions[i-1], versions[i]
		if err := exec.Command("dpkg", "--compare-versions", older, "lt", newer).Run(); err != nil {
			t.Errorf("for dpkg, %s is not older than %s: %v", older, newer, err)
		}
		if got := strings.TrimSpace(process.OutputOf(t, "rpm", "--eval", "%{lua: print(rpm.vercmp('"+older+"', '"+newer+"'))}")); got != "-1" {
			t.Errorf("for rpm, %s is not older than %s: %s", older, newer, got)
		}
	}
}

// Where there is no repository, the time of the build decides.
func TestVersionWithoutARepository(t *testing.T) {
	r := newRepository(t)
	expect.NoError(t, os.RemoveAll(filepath.Join(r.dir, ".git")))
	t.Setenv("SOURCE_DATE_EPOCH", "1769903999")
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(r.dir))
	for given, want := range map[string]string{
		"3359f70": "0~20260131235959+0+3359f70", "unknown": "0~20260131235959+0+unknown", "12-dirty": "0~20260131235959+0+12+dirty",
		"v1.2.3": "1.2.3", "v1.2.3-4-gabc-dirty": "1.2.3+4+gabc+dirty", "v1.2.3-dirty": "1.2.3+dirty", "v1.2.3-rc-1-10-gabc": "1.2.3~rc.1+10+gabc",
	} {
		if got := strings.TrimSpace(process.OutputOf(t, filepath.Join(r.dir, "version.sh"), given)); got != want {
			t.Errorf("%s becomes %s, want %s", given, got, want)
		}
	}
}
