//go:build integration

package single

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sequins/test/expect"
	"sequins/test/process"
)

// A disk is a mounted file system whose reads can be made to hang.
type disk struct {
	mu      sync.Mutex
	below   string        // the directory whose files' reads hang, relative to the root; "": none
	let     chan struct{} // closed when they go on
	waiting int           // reads that hang
}

// mountDisk mounts a disk on a path until the test ends.
func mountDisk(t *testing.T, path string) *disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Fatalf("this test needs FUSE in the kernel (modprobe fuse): %v", err)
	}
	expect.NoError(t, os.MkdirAll(path, 0o755))
	root, err := fs.NewLoopbackRoot(t.TempDir())
	expect.NoError(t, err)
	d := &disk{}
	server, err := fs.Mount(path, &diskNode{root.(*fs.LoopbackNode), d}, &fs.Options{
		// With SyncRead there is no bound for the reads in flight of all files, and without passthrough all reads come here.
		MountOptions: fuse.MountOptions{FsName: "disk", DirectMountStrict: true, SyncRead: true, DisabledCapabilities: fuse.CAP_PASSTHROUGH},
	})
	if err != nil {
		t.Fatalf("mounting a FUSE file system (this test must run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// hang makes reads of the files below a directory hang until release.
func (d *disk) hang(below string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.below, d.let = below+"/", make(chan struct{})
}

func (d *disk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.below != "" {
		d.below = ""
		close(d.let)
	}
}

// hanging returns the number of reads that hang.
func (d *disk) hanging() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}

// wait returns when a file may be read, or the request ends.
func (d *disk) wait(ctx context.Context, path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.below == "" || !strings.HasPrefix(path, d.below) {
		return
	}
	let := d.let
	d.waiting++
	d.mu.Unlock()
	select {
	case <-let:
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.waiting--
}

// A diskNode is a file or directory of a disk.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

// WrapChild implements fs.NodeWrapChilder.
func (n *diskNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{child.(*fs.LoopbackNode), n.disk}
}

// Read implements fs.NodeReader. A signal interrupts a read that hangs, so that a process can exit; others try it again.
func (n *diskNode) Read(ctx context.Context, f fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.wait(ctx, n.Path(nil))
	if ctx.Err() != nil {
		return nil, syscall.EINTR
	}
	return f.(fs.FileReader).Read(ctx, dest, off)
}

// TestHangingDisk: while reads of the block of one database hang, some of the requests for it wait and the others fail
// after a bounded time. All other requests are answered, and another database switches to its next version.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	const keys = 2000
	source, c := newNode(t)
	d := mountDisk(t, c.Store)
	for _, db := range []string{"hangs", "works"} {
		writeVersion(t, source, db, "1", 1, keys, big("1"))
	}
	c.Sections = "[storage]\ncompression = \"none\"\n"
	n := process.Serve(t, c, "hangs", "1")
	n.WaitCurrent(t, "works", "1")

	d.hang(filepath.Join("data", "hangs"))
	defer d.release() // before the node is killed, as a process that waits for such a file does not end
	asked := askHanging(n, 250, keys)
	n.WaitFor(t, "reads hang", func() bool { return d.hanging() > 0 })
	answeredAtOnce(t, n, "1", 200)
	n.WaitFor(t, "requests beyond the bound fail", func() bool { return asked.failed() > 0 })
	writeVersion(t, source, "works", "2", 1, keys, big("2"))
	n.WaitCurrent(t, "works", "2")
	answeredAtOnce(t, n, "2", keys)
	if d.hanging() == 0 {
		t.Error("no read hangs any more: this shows nothing")
	}
	waiting := asked.left()
	if waiting == 0 || waiting > 120 { // each keeps a thread
		t.Errorf("%d requests wait", waiting)
	}
	d.release()
	asked.check(t)
	for i := range keys {
		key, value := big("1")(i)
		n.Expect(t, "/hangs/"+key, 200, "1", value)
	}
}

// answeredAtOnce asks for keys of the database that works, and for /livez.
func answeredAtOnce(t *testing.T, n *process.Node, version string, keys int) {
	t.Helper()
	client := n.Client()
	defer client.Close()
	for i := range keys {
		key, value := big(version)(i)
		begin := time.Now()
		r, err := client.Get("/works/" + key)
		if err != nil || r.Code != 200 || string(r.Body) != value {
			t.Fatalf("GET %s: %+v, %v", key, r, err)
		}
		if r, err := client.Get("/livez"); err != nil || r.Code != 200 {
			t.Fatalf("GET /livez: %+v, %v", r, err)
		}
		if took := time.Since(begin); took > 5*time.Second { // milliseconds, but on a busy machine
			t.Fatalf("two requests took %v", took)
		}
	}
}

// A hangingLoad is requests that are sent at the same time.
type hangingLoad struct {
	mu      sync.Mutex
	running sync.WaitGroup
	count   int
	errors  []error
	ended   []hangingAnswer
}

type hangingAnswer struct {
	key, value string
	code       int
	body       string
	took       time.Duration
}

// askHanging sends requests for keys of the database that hangs, each over a connection of its own.
func askHanging(n *process.Node, count, keys int) *hangingLoad {
	l := &hangingLoad{count: count}
	for i := range count {
		l.running.Go(func() {
			key, value := big("1")(i * 7 % keys)
			begin := time.Now()
			r, err := n.TryGet("/hangs/" + key)
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.errors = append(l.errors, fmt.Errorf("%s: %w", key, err))
				return
			}
			l.ended = append(l.ended, hangingAnswer{key, value, r.Code, string(r.Body), time.Since(begin)})
		})
	}
	return l
}

// failed returns how many requests have been answered with an error.
func (l *hangingLoad) failed() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.ended {
		if a.code >= 500 {
			n++
		}
	}
	return n
}

// left returns how many requests have not been answered.
func (l *hangingLoad) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count - len(l.ended) - len(l.errors)
}

// check waits for the requests: each has the right answer, or failed soon.
func (l *hangingLoad) check(t *testing.T) {
	t.Helper()
	l.running.Wait()
	for _, err := range l.errors {
		t.Error(err)
	}
	right := 0
	for _, a := range l.ended {
		switch {
		case a.code == 200 && a.body == a.value:
			right++
		case a.code < 500:
			t.Errorf("%s: %d, %.100q", a.key, a.code, a.body)
		case a.took > 30*time.Second: // one, but on a busy machine
			t.Errorf("%s failed after %v", a.key, a.took)
		}
	}
	t.Logf("%d of %d requests were answered, the others failed", right, l.count)
	if right == 0 || right == l.count {
		t.Error("this shows nothing")
	}
}
