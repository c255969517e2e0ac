//go:build integration

package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// containerVariable names the file that describes a container. The test program that is started with it becomes the container's
// first process.
const containerVariable = "SEQUINS_TEST_CONTAINER"

// box describes a container: what a container runtime needs to know.
type box struct {
	Root        string // the files of the image
	ReadOnly    bool
	Mounts      []mount
	Hostname    string
	CgroupProcs string // the file of the control group to join
	CgroupV1    bool
	UID, GID    int
	Groups      []int
	KeepsCaps   bool
	NewPrivs    bool
	Dir         string
	Args, Env   []string
}

// mount is a directory or file that is visible in the container. Target is a path in it.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// becomeContainer turns this process, which is the first one in new namespaces, into a container.
func becomeContainer(file string) error {
	runtime.LockOSThread() // namespaces and capabilities belong to threads
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b box
	if err := json.Unmarshal(doc, &b); err != nil {
		return err
	}
	for _, step := range []func() error{b.joinCgroup, b.mountRoot, b.mountVolumes, b.mountKernel, b.enter, b.drop} {
		if err := step(); err != nil {
			return err
		}
	}
	return os.NewSyscallError("exec", syscall.Exec(b.Args[0], b.Args, b.Env))
}

// joinCgroup joins the control group, whose limits are then those of the root of its namespace.
func (b *box) joinCgroup() error {
	if err := os.WriteFile(b.CgroupProcs, []byte("0"), 0); err != nil {
		return err
	}
	return os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWCGROUP))
}

func (b *box) mountRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	return bind(b.Root, b.Root, false)
}

// bind mounts a directory or file elsewhere.
func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", source, target, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounting %s read-only: %w", target, err)
	}
	return nil
}

func (b *box) mountVolumes() error {
	for _, m := range b.Mounts {
		if err := bind(m.Source, filepath.Join(b.Root, m.Target), m.ReadOnly); err != nil {
			return err
		}
	}
	return nil
}

// mountKernel mounts the file systems of the kernel that every container has.
func (b *box) mountKernel() error {
	type fs struct{ kind, target, options string }
	all := []fs{{"proc", "proc", ""}, {"tmpfs", "dev", "mode=755"}, {"tmpfs", "sys/fs/cgroup", "mode=755"}}
	if b.CgroupV1 {
		all = append(all, fs{"cgroup", "sys/fs/cgroup/memory", "memory"})
	} else {
		all[2] = fs{"cgroup2", "sys/fs/cgroup", ""}
	}
	for _, f := range all {
		target := filepath.Join(b.Root, f.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(f.kind, target, f.kind, unix.MS_NOSUID|unix.MS_NOEXEC, f.options); err != nil {
			return fmt.Errorf("mounting %s: %w", f.target, err)
		}
	}
	for _, device := range []string{"null", "zero", "random", "urandom"} {
		target := filepath.Join(b.Root, "dev", device)
		if err := os.WriteFile(target, nil, 0o666); err != nil {
			return err
		}
		if err := bind("/dev/"+device, target, false); err != nil {
			return err
		}
	}
	if !b.ReadOnly {
		return nil
	}
	return os.NewSyscallError("mount", unix.Mount("", b.Root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}

// enter makes the root of the container that of the process.
func (b *box) enter() error {
	if err := os.Chdir(b.Root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := os.Chdir(b.Dir); err != nil {
		return err
	}
	return os.NewSyscallError("sethostname", unix.Sethostname([]byte(b.Hostname)))
}

// drop gives up the privileges that the container does not have.
func (b *box) drop() error {
	if !b.KeepsCaps {
		for c := range unix.CAP_LAST_CAP + 1 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
				return os.NewSyscallError("prctl", err)
			}
		}
	}
	if !b.NewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	if err := syscall.Setgroups(b.Groups); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setgid(b.GID); err != nil {
		return os.NewSyscallError("setgid", err)
	}
	if err := syscall.Setuid(b.UID); err != nil {
		return os.NewSyscallError("setuid", err)
	}
	// It was lost with the user: a container does not outlive the test.
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
}
