//go:build integration

package release

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// emulator runs programs for arm64.
const emulator = "qemu-aarch64-static"

// exampleApple is the value of "apple" in docs/example.
const exampleApple = "a fruit\n"

// The programs need no other file of the system, and say which release they are.
func TestStatic(t *testing.T) {
	machines := map[string]elf.Machine{"linux-amd64": elf.EM_X86_64, "linux-arm64": elf.EM_AARCH64}
	for system, machine := range machines {
		f, err := elf.Open(programs[system])
		expect.NoError(t, err)
		libraries, err := f.ImportedLibraries()
		if err != nil || len(libraries) > 0 || f.Machine != machine || f.Section(".interp") != nil || f.Section(".debug_info") != nil {
			t.Errorf("%s: %v, libraries %q, %v", system, f.Machine, libraries, err)
		}
		f.Close()
	}
	const mac = "darwin-arm64"
	f, err := macho.Open(programs[mac])
	expect.NoError(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec {
		t.Errorf("%s: %v %v, %v", mac, f.Cpu, f.Type, err)
	}
	for _, library := range libraries { // of macOS itself, which has no other interface
		if !strings.HasPrefix(library, "/usr/lib/lib") && !strings.HasPrefix(library, "/System/Library/Frameworks/") {
			t.Errorf("%s needs %s", mac, library)
		}
	}
	for _, command := range [][]string{{programs["linux-amd64"]}, {emulator, programs["linux-arm64"]}} {
		if got := process.OutputOf(t, command[0], append(command[1:], "--version")...); !strings.HasPrefix(got, "sequins "+tag+" ") {
			t.Errorf("%s: version %q", command, got)
		}
	}
	for system, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if want := "go" + goVersion(t); err != nil || info.GoVersion != want {
			t.Errorf("%s was built by %v, %v, want %s", system, info, err, want)
		}
	}
}

// goVersion is the one of go.mod.
func goVersion(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(process.Root(), "go.mod"))
	expect.NoError(t, err)
	_, rest, _ := strings.Cut(string(mod), "\ngo ")
	version, _, _ := strings.Cut(rest, "\n")
	return version
}

// Both programs for Linux serve what is in the repository as an example. The one for arm64 does so under QEMU, from the store that
// the other has made: a node starts itself again to load, which QEMU cannot do for it. TestBuildOnArm64 shows how it loads.
func TestServe(t *testing.T) {
	store := t.TempDir()
	for _, command := range [][]string{{programs["linux-amd64"]}, {emulator, programs["linux-arm64"]}} {
		source := filepath.Join(process.Root(), "docs", "example")
		addr := process.FreeAddr(t)
		args := append(command[1:], "--source", source, "--local-store", store, "--bind", addr)
		serve(t, addr, exec.Command(command[0], args...))
	}
}

// Blocks that arm64 makes, of files of all formats that others wrote, are equal to those of amd64, byte for byte, and each can read the
// other's.
func TestBuildOnArm64(t *testing.T) {
	t.Setenv("SEQUINS_DB__words__KEY", "id")
	t.Setenv("SEQUINS_DB__words__VALUE", "note")
	for _, fixture := range []string{"avro-zstandard", "big-block-bzip2", "bytes-block-snappy", "bytes-every-byte", "bytes-record-lz4", "cut-string-text"} {
		src, dir := filepath.Join(process.Root(), "testdata", "fixtures", fixture, "1"), t.TempDir()
		native, emulated := filepath.Join(dir, "words", "native"), filepath.Join(dir, "words", "emulated")
		process.OutputOf(t, programs["linux-amd64"], "build", src, native)
		process.OutputOf(t, emulator, programs["linux-arm64"], "build", src, emulated)
		process.OutputOf(t, "diff", "-r", native, emulated)
		process.OutputOf(t, programs["linux-amd64"], "verify", emulated)
		process.OutputOf(t, emulator, programs["linux-arm64"], "verify", native)
	}
}

// The packages for arm64 have the program of the release, and what the packages for amd64 have.
func TestPackagesForArm64(t *testing.T) {
	want, err := os.ReadFile(programs["linux-arm64"])
	expect.NoError(t, err)
	deb, rpm := filepath.Join(dist, "sequins_7.8.9_arm64.deb"), filepath.Join(dist, "sequins-7.8.9-1.aarch64.rpm")
	if got := strings.TrimSpace(process.OutputOf(t, "dpkg-deb", "--field", deb, "Architecture")); got != "arm64" {
		t.Errorf("the deb is for %s", got)
	}
	if got := process.OutputOf(t, "rpm", "-qp", "--queryformat", "%{ARCH}", rpm); got != "aarch64" {
		t.Errorf("the rpm is for %s", got)
	}
	for name, unpack := range map[string]string{
		deb: `dpkg-deb --extract "$1" "$2"`,
		rpm: `run=; [ "$(id -u)" = 0 ] || run="unshare --map-root-user"; $run rpm --root "$2" --install --nodeps --noscripts --ignorearch "$1"`,
	} {
		dir := t.TempDir()
		process.OutputOf(t, "bash", "-euo", "pipefail", "-c", unpack, "unpack", name, dir)
		if got, err := os.ReadFile(filepath.Join(dir, "usr/bin/sequins")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: not the program of the archive: %v", filepath.Base(name), err)
		}
	}
	contents := func(arch string) (names string) {
		for line := range strings.Lines(process.OutputOf(t, "dpkg-deb", "--contents", filepath.Join(dist, fmt.Sprintf("sequins_7.8.9_%s.deb", arch)))) {
			fields := strings.Fields(line)
			names += fields[0] + fields[5] + "\n"
		}
		return names
	}
	if amd64, arm64 := contents("amd64"), contents("arm64"); amd64 != arm64 {
		t.Errorf("the debs differ:\n%s\n%s", amd64, arm64)
	}
}

// serve starts a node of docs/example, reads a word from it, and ends it.
func serve(t *testing.T, addr string, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	expect.NoError(t, cmd.Start())
	defer func() {
		if t.Failed() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
			t.Logf("%s:\n%s", cmd, &said)
		}
	}()
	c := process.NewClient(addr)
	defer c.Close()
	process.Eventually(t, "the word is served", func() bool {
		r, err := c.Get("/words/apple")
		return err == nil && r.Code == 200 && string(r.Body) == exampleApple
	})
	expect.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
}
