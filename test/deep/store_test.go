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

// TestStore: the store on file systems that are read-only, unfit or without hard links, and of another user.
func TestStore(t *testing.T) {
	source := t.TempDir()
	writeVersion(t, source, 10)
	conf := func(store string) string {
		return fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\n", source, store, process.FreeAddr(t))
	}
	small := filepath.Join(t.TempDir(), "small")
	mount(t, small, 0, "size=4m")
	r := check(t, conf(small), 0)
	r.expects("local_store", "warning", "tmpfs, which is memory")
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	fixed := filepath.Join(t.TempDir(), "fixed")
	mount(t, fixed, syscall.MS_RDONLY, "size=64m")
	check(t, conf(fixed), 0).expects("local_store", "failed", "read-only file system")

	linkless := filepath.Join(t.TempDir(), "linkless")
	mountWithoutLinks(t, linkless)
	check(t, conf(linkless), 0).expects("local_store", "failed", "hard links do not work")

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
	check(t, conf(dir), nobody).expects("local_store", "failed", "permission denied", "user nobody (65534)")
	check(t, conf(dir), other).expects("local_store", "ok", "can be written")
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
