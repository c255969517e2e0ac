//go:build integration

package deep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sequins/test/process"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestStore: the store on file systems that are too small, read-only, unfit or without hard links, and of another user.
func TestStore(t *testing.T) {
	source := t.TempDir()
	writeVersion(t, source, 6<<20)
	conf := func(store string) string {
		return fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\n", source, store, process.FreeAddr(t))
	}
	small := filepath.Join(t.TempDir(), "small")
	mount(t, small, 0, "size=4m")
	r := check(t, conf(small), 0)
	r.expects("local_store, file system", "warning", "tmpfs, which is memory")
	r.expects("local_store, free space", "failed", "need about 6.0 MiB, and ", "are free", "use a larger disk")
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	between := filepath.Join(t.TempDir(), "between")
	mount(t, between, 0, "size=7m")
	check(t, conf(between), 0).expects("local_store, free space", "ok", "6.0 MiB")
	check(t, conf(between)+"[load]\nmemory = \"1MiB\"\n", 0).expects("local_store, free space", "warning", "if files are not sorted and partitioned, 6.0 MiB more")

	fixed := filepath.Join(t.TempDir(), "fixed")
	mount(t, fixed, syscall.MS_RDONLY, "size=64m")
	check(t, conf(fixed), 0).expects("local_store", "failed", "read-only file system", "remount it")

	linkless := filepath.Join(t.TempDir(), "linkless")
	mountWithoutLinks(t, linkless)
	r = check(t, conf(linkless), 0)
	r.expects("local_store", "failed", "hard links do not work")
	r.expects("local_store, file system", "warning", "fuse")

	// of another user
	dir, err := os.MkdirTemp("", "sequins-store-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const nobody, other = 65534, 12345
	if err := os.Chown(dir, other, other); err != nil {
		t.Fatal(err)
	}
	check(t, conf(dir), 0).expects("local_store", "warning", "belongs to user 12345 and was tried as root")
	check(t, conf(dir), nobody).expects("local_store", "failed", "permission denied", "user nobody (65534)")
	check(t, conf(dir), other).expects("local_store", "ok", "can be written")
}

// TestLimits: the limit of open files.
func TestLimits(t *testing.T) {
	conf := configuration(t, t.TempDir(), "")
	check(t, conf, 0, "prlimit", "--nofile=1024:1024").expects("files", "warning", "1024 files", "LimitNOFILE")
	check(t, conf, 0, "prlimit", "--nofile=16384:16384").expects("files", "ok", "16384 files open, and 8128 connections")
	check(t, "max_connections = 15000\n"+conf, 0, "prlimit", "--nofile=16384:16384").expects("files", "warning", "max_connections leaves too few")
	check(t, strings.Replace(conf, "bind = \"127.0.0.1:", "bind = \"127.0.0.1:80\"\n#", 1), 65534).expects("bind", "failed", "CAP_NET_BIND_SERVICE")
}

func mount(t *testing.T, path string, flags uintptr, options string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", flags, options); err != nil {
		t.Fatalf("mounting a small tmpfs (this test must run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// linkless is a file system that has no hard links.
type linkless struct{ *fs.LoopbackNode }

// WrapChild implements fs.NodeWrapChilder.
func (n *linkless) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &linkless{ops.(*fs.LoopbackNode)}
}

// Link implements fs.NodeLinker.
func (n *linkless) Link(_ context.Context, _ fs.InodeEmbedder, _ string, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return nil, syscall.EPERM
}

func mountWithoutLinks(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := fs.NewLoopbackRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server, err := fs.Mount(path, &linkless{root.(*fs.LoopbackNode)}, &fs.Options{MountOptions: fuse.MountOptions{FsName: "linkless", DirectMountStrict: true}})
	if err != nil {
		t.Fatalf("mounting a FUSE file system (this test must run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
}
