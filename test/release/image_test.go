//go:build integration

package release

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sequins/test/expect"
	"sequins/test/process"
)

// user is who the containers run as.
const user = 65532

// config is the part of an image's configuration that is tested, with the names of the specification.
type config struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       struct {
		User         string
		Entrypoint   []string
		WorkingDir   string
		StopSignal   string
		ExposedPorts map[string]struct{}
		Volumes      map[string]struct{}
		Labels       map[string]string
	} `json:"config"`
}

// The image holds both architectures; skopeo finds each as registries would give it.
func TestImageConfig(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		var c config
		said := process.OutputOf(t, "skopeo", "--override-os", "linux", "--override-arch", arch, "inspect", "--config", "oci-archive:"+imageFile()+":"+version)
		expect.NoError(t, json.Unmarshal([]byte(said), &c))
		labels := c.Config.Labels
		c.Config.Labels = nil
		want := config{Created: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Architecture: arch, OS: "linux"}
		want.Config.User, want.Config.Entrypoint, want.Config.StopSignal = "65532:65532", []string{"/usr/bin/sequins"}, "SIGTERM"
		want.Config.WorkingDir = "/var/sequins"
		want.Config.ExposedPorts, want.Config.Volumes = map[string]struct{}{"9599/tcp": {}}, map[string]struct{}{"/var/sequins": {}}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("%s (-want +got):\n%s", arch, diff)
		}
		if labels["org.opencontainers.image.version"] != version || len(labels["org.opencontainers.image.revision"]) != 40 {
			t.Errorf("%s: labels %q", arch, labels)
		}
	}
}

func imageFile() string { return filepath.Join(dist, "sequins-"+version+"-image.tar") }

// unpack makes the root of a container by tools of others, as the user of the test may.
func unpack(t *testing.T, arch string) (root string) {
	t.Helper()
	dir := t.TempDir()
	process.OutputOf(t, "skopeo", "--override-os", "linux", "--override-arch", arch, "copy", "-q", "oci-archive:"+imageFile()+":"+version, "oci:"+dir+"/layout:"+version)
	args := []string{"unpack", "--image", dir + "/layout:" + version, dir + "/bundle"}
	if os.Geteuid() != 0 {
		args = slices.Insert(args, 1, "--rootless")
	}
	process.OutputOf(t, "umoci", args...)
	return filepath.Join(dir, "bundle", "rootfs")
}

// The image runs without other files: in its own root, as its user, who can write where the data go and nowhere else.
func TestImage(t *testing.T) {
	store := filepath.Join(t.TempDir(), "sequins")
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			root := unpack(t, arch)
			parents(t, root)
			expect.NoError(t, os.CopyFS(filepath.Join(root, "srv"), os.DirFS(filepath.Join(process.Root(), "docs", "example"))))
			process.OutputOf(t, "chmod", "-R", "a+rX", filepath.Join(root, "srv"))
			program := []string{"/usr/bin/sequins"}
			if arch == "arm64" { // which serves from what amd64 has loaded: see TestServe
				process.OutputOf(t, "cp", "-a", store, filepath.Join(root, "var"))
				program = []string{"/emulator", "/usr/bin/sequins"}
				path, err := exec.LookPath(emulator)
				expect.NoError(t, err)
				process.OutputOf(t, "cp", path, filepath.Join(root, "emulator"))
			}
			addr := process.FreeAddr(t)
			cmd := &exec.Cmd{Path: program[0], Args: append(program, "--source", "/srv", "--bind", addr), Dir: "/", Env: []string{}, SysProcAttr: container(root)}
			serve(t, addr, cmd)
			if arch == "amd64" {
				process.OutputOf(t, "cp", "-a", filepath.Join(root, "var", "sequins"), store)
			}
			if stored, err := filepath.Glob(filepath.Join(root, "var/sequins/data/words/2026-01-31/*/*.block")); err != nil || len(stored) == 0 {
				t.Errorf("nothing is stored in /var/sequins: %v", err)
			}
		})
	}
}

// parents opens the directories of the test to all users, down to the root of a container.
func parents(t *testing.T, root string) {
	t.Helper()
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		expect.NoError(t, os.Chmod(dir, 0o755))
	}
}

// container is a process below a root, as root the image's user, else as one that has been given a user namespace in
// which to do that.
func container(root string) *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}, Pdeathsig: syscall.SIGKILL}
	}
	return &syscall.SysProcAttr{
		Chroot: root, Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
	}
}

// What is in the image: as little as can be, and of root except what the user writes to.
func TestImageFiles(t *testing.T) {
	layout := t.TempDir()
	process.OutputOf(t, "skopeo", "--override-arch", "arm64", "copy", "-q", "oci-archive:"+imageFile()+":"+version, "dir:"+layout)
	var manifest struct {
		Layers []struct{ Digest string }
	}
	b, err := os.ReadFile(filepath.Join(layout, "manifest.json"))
	expect.NoError(t, err)
	if err := json.Unmarshal(b, &manifest); err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%d layers, %v", len(manifest.Layers), err)
	}
	layer := filepath.Join(layout, manifest.Layers[0].Digest[len("sha256:"):])
	got := process.OutputOf(t, "bash", "-c", `tar --numeric-owner -tvzf "$1" | awk '{ print $1, $2, $6 }'`, "list", layer)
	want := `drwxr-xr-x 0/0 etc/
-rw-r--r-- 0/0 etc/group
-rw-r--r-- 0/0 etc/passwd
drwxr-xr-x 0/0 etc/ssl/
drwxr-xr-x 0/0 etc/ssl/certs/
-rw-r--r-- 0/0 etc/ssl/certs/ca-certificates.crt
drwxr-xr-x 0/0 usr/
drwxr-xr-x 0/0 usr/bin/
-rwxr-xr-x 0/0 usr/bin/sequins
drwxr-xr-x 0/0 usr/share/
drwxr-xr-x 0/0 usr/share/doc/
drwxr-xr-x 0/0 usr/share/doc/sequins/
-rw-r--r-- 0/0 usr/share/doc/sequins/LICENSE
-rw-r--r-- 0/0 usr/share/doc/sequins/THIRD_PARTY_NOTICES
drwxr-xr-x 0/0 var/
drwxr-xr-x 65532/65532 tmp/
drwxr-xr-x 65532/65532 var/sequins/
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	authorities(t, []byte(process.OutputOf(t, "tar", "-xOzf", layer, "etc/ssl/certs/ca-certificates.crt")))
}

// authorities tests that the certificates are those of authorities, and most of those that Debian has, which are of the
// same list at another time.
func authorities(t *testing.T, bundle []byte) {
	t.Helper()
	subjects := func(bundle []byte) map[string]bool {
		all := map[string]bool{}
		for {
			var block *pem.Block
			if block, bundle = pem.Decode(bundle); block == nil {
				return all
			}
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil || !c.IsCA {
				t.Fatalf("%v: an authority: %v", err, err == nil && c.IsCA)
			}
			all[fmt.Sprintf("%x", c.RawSubject)] = true
		}
	}
	debian, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	expect.NoError(t, err)
	ours, theirs, common := subjects(bundle), subjects(debian), 0
	for subject := range ours {
		if theirs[subject] {
			common++
		}
	}
	if len(ours) < 100 || common < len(ours)*7/10 {
		t.Errorf("%d authorities, of which Debian knows %d", len(ours), common)
	}
}
