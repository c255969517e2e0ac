//go:build integration

package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"sequins/test/process"
)

// The content of the image runs without other files: the program, in its own root, as the user that the
// Dockerfile names.
func TestImage(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(dockerfile), "\nFROM scratch\n")
	for _, want := range []string{"\nUSER 65532:65532\n", "\nENTRYPOINT [\"/usr/bin/sequins\"]\n", "\nEXPOSE 9599\n", "\nVOLUME /var/sequins\n"} {
		if !strings.Contains("\n"+last, want) {
			t.Errorf("the Dockerfile ends without %q:\n%s", want, last)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^(COPY|ADD|RUN) `).FindAllString(last, -1)); n != 1 {
		t.Errorf("%d instructions put something into the image, want one", n)
	}

	image := filepath.Join(t.TempDir(), "image")
	for _, dir := range []string{"usr/bin", "var/sequins", "tmp", "srv/sequins"} {
		if err := os.MkdirAll(filepath.Join(image, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(process.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "usr/bin/sequins"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	writeWords(t, filepath.Join(image, "srv/sequins"))
	open(t, image)

	addr := process.FreeAddr(t)
	cmd := exec.Command("/usr/bin/sequins", "--source", "/srv/sequins", "--bind", addr)
	cmd.Path, cmd.Dir, cmd.Env = "/usr/bin/sequins", "/", []string{}
	cmd.SysProcAttr = imageProcess(image)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	expectWord(t, addr)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &said)
	}
}

// open makes a tree of the test accessible to all users.
func open(t *testing.T, dir string) {
	t.Helper()
	output(t, "chmod", "-R", "a+rwX", dir)
}

// imageProcess is a process below a root, as root the image's user, else as one that has been given a user
// namespace in which to do that.
func imageProcess(root string) *syscall.SysProcAttr {
	const user = 65532
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{
		Chroot: root, Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
	}
}
