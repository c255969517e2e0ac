// Package gateway runs a real S3 server for tests: versitygw, which stores objects as files and checks signatures.
// Build builds the program, once for all test packages and runs, outside of this module; Start runs a server that is
// stopped with the test; Proxy puts toxiproxy in front of it.
package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"sequins/test/ports"
)

// The user and the bucket of every gateway.
const (
	AccessKey = "GATEWAYKEY"
	SecretKey = "gateway-secret"
	Region    = "us-east-1"
	Bucket    = "bucket"
)

// startTime bounds the time until the first answer, on a busy machine.
const startTime = 30 * time.Second

// Gateway is a running server.
type Gateway struct {
	Addr   string // host:port
	client *s3.Client
	cmd    *exec.Cmd
	done   chan struct{}
	log    bytes.Buffer // output of the process; read it after done
}

// Start runs a server with an empty bucket until the test ends.
func Start(t testing.TB) *Gateway {
	t.Helper()
	g, err := Run(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Kill)
	return g
}

// Run runs a server with an empty bucket, which keeps its objects in a directory, until Kill.
func Run(ctx context.Context, dir string) (*Gateway, error) {
	binary, err := Build()
	if err != nil {
		return nil, err
	}
	g := &Gateway{done: make(chan struct{})}
	if g.Addr, err = ports.Free(); err != nil {
		return nil, err
	}
	g.cmd = exec.Command(binary, "--port", g.Addr, "--access", AccessKey, "--secret", SecretKey,
		"--region", Region, "--quiet", "posix", dir)
	g.cmd.Stdout, g.cmd.Stderr = &g.log, &g.log
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := g.run(); err != nil {
		return nil, err
	}
	g.client = Client(g.Endpoint())
	if err = g.waitListening(); err == nil {
		_, err = g.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	}
	if err != nil {
		g.Kill()
		return nil, err
	}
	return g, nil
}

// run starts the process. Pdeathsig applies to the thread that starts it, so that thread is locked while the process
// lives.
func (g *Gateway) run() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := g.cmd.Start()
		started <- err
		if err == nil {
			_ = g.cmd.Wait() // it is always killed
			close(g.done)
		}
	}()
	return <-started
}

// Client returns a client of a gateway or of a proxy in front of it.
func Client(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}

func (g *Gateway) waitListening() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(startTime); time.Now().Before(end); {
		if c, err := net.Dial("tcp", g.Addr); err == nil {
			return c.Close()
		}
		select {
		case <-g.done:
			return fmt.Errorf("the gateway ended: %s", g.log.String())
		case <-tick.C:
		}
	}
	return fmt.Errorf("no answer from the gateway within %v", startTime)
}

// Endpoint returns the server's URL.
func (g *Gateway) Endpoint() string { return "http://" + g.Addr }

// Kill kills the server with SIGKILL.
func (g *Gateway) Kill() {
	_ = g.cmd.Process.Kill() // it may have ended already
	<-g.done
}

// CPU returns the CPU time of the server.
func (g *Gateway) CPU(t testing.TB) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// proc(5): utime and stime are fields 14 and 15, in hundredths of a second; field 2, a name in parentheses, may
	// contain spaces.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// Freeze stops the process: connections stay open, new ones are accepted by
// the kernel, and nothing answers.
func (g *Gateway) Freeze(t testing.TB) { g.signal(t, syscall.SIGSTOP) }

// Thaw continues the process.
func (g *Gateway) Thaw(t testing.TB) { g.signal(t, syscall.SIGCONT) }

func (g *Gateway) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// Put writes an object. A key that ends in a slash stands for a directory.
func (g *Gateway) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	_, err := g.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: &key, Body: bytes.NewReader(data)})
	if err != nil {
		t.Fatalf("putting %s: %v", key, err)
	}
}

// PutFile writes an object with the content of a file.
func (g *Gateway) PutFile(ctx context.Context, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = g.client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: &key, Body: f})
	return err
}

// PutAll writes many objects with the same content, several concurrently.
func (g *Gateway) PutAll(t testing.TB, keys []string, data []byte) {
	t.Helper()
	work := make(chan string)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for key := range work {
				_, err := g.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: &key, Body: bytes.NewReader(data)})
				if err != nil {
					t.Errorf("putting %s: %v", key, err)
				}
			}
		})
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	writers.Wait()
}

// Remove removes an object.
func (g *Gateway) Remove(t testing.TB, key string) {
	t.Helper()
	if _, err := g.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(Bucket), Key: &key}); err != nil {
		t.Fatalf("removing %s: %v", key, err)
	}
}

// PutTree writes the files of a directory, in order of names, under prefix.
func (g *Gateway) PutTree(t testing.TB, prefix, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		g.Put(t, prefix+"/"+e.Name(), b)
	}
}

// Version is the release of versitygw that the tests use.
const Version = "v1.8.0"

var build = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	cache := filepath.Join(filepath.Dir(here), "..", "..", ".cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "versitygw.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	binary := filepath.Join(cache, "versitygw-"+Version)
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	return binary, install(cache, binary)
})

// Build returns the path of the program. It builds it if necessary, which takes a minute or two.
func Build() (string, error) { return build() }

// install builds in a temporary directory, so that a program under the final name is complete.
func install(cache, binary string) error {
	dir, err := os.MkdirTemp(cache, "versitygw-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", "github.com/versity/versitygw/cmd/versitygw@"+Version)
	cmd.Dir = dir // not in our module
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go install versitygw: %w\n%s", err, out)
	}
	return os.Rename(filepath.Join(dir, "versitygw"), binary)
}

// lock locks a file exclusively, and waits for other holders.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil // unlocks
}
