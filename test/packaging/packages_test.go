//go:build integration

package packaging

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
	"sequins/test/process"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("SEQUINS_SETTLE", "0s") // what nodes serve has been there before
	m.Run()
	process.RemoveBinary()
	if made.dir != "" {
		os.RemoveAll(made.dir)
	}
}

// combined runs a command, however it ends, and returns all that it prints.
func combined(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

var made struct {
	once     sync.Once
	dir      string
	deb, rpm string
}

// packages makes the packages, once, as make package does, of a version that a tag names.
func packages(t *testing.T) (deb, rpm string) {
	t.Helper()
	made.once.Do(func() {
		var err error
		if made.dir, err = os.MkdirTemp("", "sequins-packages-"); err != nil {
			t.Fatal(err)
		}
		process.OutputOf(t, "make", "-C", process.Root(), "package", "VERSION=v1.2.3-4-gabc", "DIST="+made.dir, "BINARY="+process.Binary(t))
		made.deb = filepath.Join(made.dir, fmt.Sprintf("sequins_1.2.3+4+gabc_%s.deb", runtime.GOARCH))
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		made.rpm = filepath.Join(made.dir, fmt.Sprintf("sequins-1.2.3+4+gabc-1.%s.rpm", machine))
	})
	for _, path := range []string{made.deb, made.rpm} {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return made.deb, made.rpm
}

// wanted are the files of both packages, without the manual pages of the commands.
var wanted = []string{
	"/etc/sequins.conf",
	"/usr/bin/sequins",
	"/usr/lib/systemd/system/sequins.service",
	"/usr/share/bash-completion/completions/sequins",
	"/usr/share/doc/sequins/CHANGELOG.md",
	"/usr/share/doc/sequins/README.md",
	"/usr/share/doc/sequins/packaging/contrib/grafana/sequins.json",
	"/usr/share/doc/sequins/packaging/contrib/prometheus/alerts.yml",
	"/usr/share/doc/sequins/copyright",
	"/usr/share/doc/sequins/docs/OPERATING.md",
	"/usr/share/doc/sequins/docs/RUNBOOK.md",
	"/usr/share/doc/sequins/docs/README.md",
	"/usr/share/doc/sequins/docs/example/words/2026-01-31/part-r-00001",
	"/usr/share/doc/sequins/docs/words.parquet",
	"/usr/share/doc/sequins/sequins.conf.example",
	"/usr/share/fish/vendor_completions.d/sequins.fish",
	"/usr/share/man/man1/sequins-status.1.gz",
	"/usr/share/man/man1/sequins.1.gz",
}

func TestBothPackagesHoldTheSame(t *testing.T) {
	deb, rpm := packages(t)
	var inDeb []string
	for line := range strings.Lines(process.OutputOf(t, "dpkg-deb", "--contents", deb)) {
		fields := strings.Fields(line)
		if name := strings.TrimPrefix(fields[5], "."); !strings.HasSuffix(name, "/") {
			inDeb = append(inDeb, name)
			if name == "/etc/sequins.conf" && fields[0] != "-rw-r-----" {
				t.Errorf("%s has the mode %s", name, fields[0])
			}
			if fields[1] != "root/root" {
				t.Errorf("%s belongs to %s", name, fields[1])
			}
		}
	}
	for _, name := range append(wanted, "/usr/share/zsh/vendor-completions/_sequins") {
		if !slices.Contains(inDeb, name) {
			t.Errorf("the deb has no %s", name)
		}
	}
	var inRPM []string
	for line := range strings.Lines(process.OutputOf(t, "rpm", "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", rpm)) {
		mode, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(mode, "d") {
			inRPM = append(inRPM, strings.Replace(name, "/zsh/site-functions/", "/zsh/vendor-completions/", 1))
		} else if !strings.HasPrefix(name, "/usr/share/doc/sequins") {
			t.Errorf("the rpm owns %s", name)
		}
	}
	slices.Sort(inRPM)
	slices.Sort(inDeb)
	if diff := cmp.Diff(inDeb, inRPM); diff != "" {
		t.Errorf("(-deb +rpm):\n%s", diff)
	}
	for query, want := range map[string]string{"--configfiles": "/etc/sequins.conf", "--requires": "shadow-utils", "--scripts": "useradd"} {
		if got := process.OutputOf(t, "rpm", "-qp", query, rpm); !strings.Contains(got, want) {
			t.Errorf("rpm -qp %s: %s", query, got)
		}
	}
	for field, want := range map[string]string{"Package": "sequins", "Version": "1.2.3+4+gabc", "Depends": "passwd", "Architecture": runtime.GOARCH} {
		if got := strings.TrimSpace(process.OutputOf(t, "dpkg-deb", "--field", deb, field)); got != want {
			t.Errorf("%s of the deb is %q, want %q", field, got, want)
		}
	}
}

// Whoever reads the installed documentation can follow its links.
func TestLinksOfInstalledDocs(t *testing.T) {
	deb, _ := packages(t)
	dir := t.TempDir()
	process.OutputOf(t, "dpkg-deb", "--extract", deb, dir)
	CheckLinks(t, dir)
}

// root is a directory that a package is installed below.
type root struct {
	t   *testing.T
	dir string
}

func newRoot(t *testing.T) *root {
	r := &root{t, t.TempDir()}
	for name, content := range map[string]string{"etc/passwd": "", "etc/group": "", "var/lib/dpkg/status": ""} {
		r.write(name, content)
	}
	return r
}

func (r *root) path(name string) string { return filepath.Join(r.dir, name) }

func (r *root) write(name, content string) {
	r.t.Helper()
	expect.NoError(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	expect.NoError(r.t, os.WriteFile(r.path(name), []byte(content), 0o644))
}

func (r *root) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(r.path(name))
	expect.NoError(r.t, err)
	return string(b)
}

// dpkg runs dpkg on the root. The scripts of the package run too, with the root in their environment.
func (r *root) dpkg(args ...string) string {
	r.t.Helper()
	cmd := []string{"dpkg", "--root=" + r.dir, "--force-script-chrootless", "--force-depends", "--force-confold"}
	if os.Geteuid() != 0 {
		cmd = append([]string{"unshare", "--map-root-user"}, cmd...)
	}
	return process.OutputOf(r.t, cmd[0], append(cmd[1:], args...)...)
}

// files are all below the root that are not dpkg's own.
func (r *root) files() (all []string) {
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(path, "/var/lib/dpkg/") {
			all = append(all, strings.TrimPrefix(path, r.dir))
		}
		return err
	})
	expect.NoError(r.t, err)
	return all
}

// The life of an installation.
func TestDeb(t *testing.T) {
	deb, _ := packages(t)
	r := newRoot(t)
	before := r.files()
	if said := r.dpkg("--install", deb); !strings.Contains(said, "set source in /etc/sequins.conf") {
		t.Errorf("the installation says %s", said)
	}
	if users := r.read("etc/passwd"); !strings.Contains(users, "sequins:") || !strings.Contains(users, ":/var/lib/sequins:/usr/sbin/nologin") {
		t.Errorf("the users are %q", users)
	}
	group := regexp.MustCompile(`(?m)^sequins:[^:]*:(\d+):`).FindStringSubmatch(r.read("etc/group"))
	if info, err := os.Stat(r.path("etc/sequins.conf")); err != nil || info.Mode() != 0o640 ||
		os.Geteuid() == 0 && (group == nil || fmt.Sprint(info.Sys().(*syscall.Stat_t).Gid) != group[1]) {
		t.Errorf("the configuration is %v, of a group other than %s: %v", info.Mode(), group, err)
	}
	serve(t, r)
	page := filepath.Join(t.TempDir(), "sequins.1")
	expect.NoError(t, os.WriteFile(page, []byte(process.OutputOf(t, "gzip", "-dc", r.path("usr/share/man/man1/sequins.1.gz"))), 0o644))
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte(".SH NAME\nsequins")) {
		t.Errorf("sequins.1: %v %.200s", err, b)
	}

	r.write("etc/sequins.conf", "source = \"/srv/mine\"\n")
	r.dpkg("--install", deb)
	if conf := r.read("etc/sequins.conf"); conf != "source = \"/srv/mine\"\n" {
		t.Errorf("the upgrade has changed the configuration:\n%s", conf)
	}

	r.write("var/lib/sequins/data/words/1/0123456789abcdef/00000.block", "")
	r.dpkg("--remove", "sequins")
	want := append([]string{"/etc/sequins.conf", "/var/lib/sequins/data/words/1/0123456789abcdef/00000.block"}, before...)
	if left := withoutBackups(r.files()); !sameFiles(left, want) {
		t.Errorf("a removal leaves %v", left)
	}
	r.dpkg("--purge", "sequins")
	if left := withoutBackups(r.files()); !sameFiles(left, before) {
		t.Errorf("a purge leaves %v", left)
	}
}

// withoutBackups leaves out the backups of useradd, and the lines that it adds.
func withoutBackups(files []string) []string {
	return slices.DeleteFunc(files, func(name string) bool {
		return strings.HasPrefix(name, "/etc/") && (strings.HasSuffix(name, "-") || strings.Contains(name, "shadow") || strings.Contains(name, "/etc/sub"))
	})
}

func sameFiles(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// serve runs the installed program like the unit, with other directories for its data, and watches it like systemd.
func serve(t *testing.T, r *root) {
	t.Helper()
	unit := r.read("usr/lib/systemd/system/sequins.service")
	if !strings.Contains(unit, "\nExecStart=/usr/bin/sequins --config /etc/sequins.conf\n") ||
		!strings.Contains(unit, "\nStateDirectory=sequins\n") || !strings.Contains(r.read("etc/sequins.conf"), "\nlocal_store = \"/var/lib/sequins\"\n") ||
		!strings.Contains(r.read("etc/sequins.conf"), "\nshutdown_delay = \"5s\"\n") {
		t.Errorf("the unit and the configuration do not fit together:\n%s", unit)
	}
	program, conf := r.path("usr/bin/sequins"), r.path("etc/sequins.conf")
	process.OutputOf(t, program, "check-config", conf)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	writeWords(t, source)
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	expect.NoError(t, err)
	defer notify.Close()

	addr := process.FreeAddr(t)
	cmd := exec.Command(program, "--config", conf, "--source", source, "--local-store", filepath.Join(dir, "store"), "--bind", addr)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	var said bytes.Buffer
	cmd.Stderr = &said
	expect.NoError(t, cmd.Start())
	defer cmd.Process.Kill() // if it has not ended yet
	notify.SetReadDeadline(time.Now().Add(process.Deadline))
	buf := make([]byte, 100)
	if n, err := notify.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Fatalf("systemd is told %q, %v", buf[:n], err)
	}
	expectWord(t, addr)
	if got := process.OutputOf(t, program, "status", "--server", addr); !strings.Contains(got, "Serving 1 database.") {
		t.Errorf("sequins status: %s", got)
	}
	expect.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
}
