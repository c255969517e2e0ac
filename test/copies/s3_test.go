//go:build integration

package copies

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/process"
	"sequins/test/venv"
)

// A bucket is the scene of a node whose source is a bucket.
type bucket struct {
	*scene
	*gateway.Gateway
	disk string // where the server keeps its objects
	from string // version 2, on the local disk
}

// prefix is what the keys of all versions begin with.
const prefix = "jobs/" + db + "/"

// inBucket starts a server, and a node that serves version 1 of a bucket. change may change its configuration.
func inBucket(t testing.TB, v version) *bucket {
	t.Helper()
	b := startServer(t)
	root := t.TempDir()
	b.from = v.write(t, filepath.Join(root, "1"))
	b.PutTree(t, prefix+"1", b.from)
	b.scene = open(t, b.configure(t), v)
	b.from = v.next().write(t, filepath.Join(root, "2"))
	return b
}

func startServer(t testing.TB) *bucket {
	t.Helper()
	b := &bucket{disk: t.TempDir()}
	var err error
	if b.Gateway, err = gateway.Run(t.Context(), b.disk); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

func (b *bucket) configure(t testing.TB) process.Config {
	return configure(t, "s3://"+gateway.Bucket+"/jobs", fmt.Sprintf("[s3]\nregion = %q\nendpoint = %q\npath_style = true\naccess_key_id = %q\nsecret_access_key = %q\n",
		gateway.Region, b.Endpoint(), gateway.AccessKey, gateway.SecretKey))
}

// aws uploads a directory as version 2 by aws s3 cp --recursive, with lines of the section s3 of its configuration.
func (b *bucket) aws(t testing.TB, lines, from string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "aws")
	text := "[default]\nregion = " + gateway.Region + "\ns3 =\n  addressing_style = path\n"
	for _, line := range filepath.SplitList(lines) {
		text += "  " + line + "\n"
	}
	expect.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	python := venv.Python(t, "requirements.txt")
	cmd := tool(t, filepath.Join(filepath.Dir(python), "aws"), "--endpoint-url", b.Endpoint(), "s3", "cp", "--recursive", "--only-show-errors", from, "s3://"+gateway.Bucket+"/"+prefix+"2")
	cmd.Env = append(os.Environ(), "AWS_CONFIG_FILE="+conf, "AWS_SHARED_CREDENTIALS_FILE="+conf, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID="+gateway.AccessKey, "AWS_SECRET_ACCESS_KEY="+gateway.SecretKey)
	run(t, cmd)
}

const (
	// oneByOne uploads small files one after the other, at the rate of one a second or so.
	oneByOne = "max_concurrent_requests = 1:max_bandwidth = 300KB/s"
	// inParallel uploads files of more than 5 MiB in parts, several at a time.
	inParallel = "max_concurrent_requests = 4:multipart_threshold = 5MB:multipart_chunksize = 5MB:max_bandwidth = 6MB/s"
)

// TestBucket uploads versions by aws s3 cp --recursive.
func TestBucket(t *testing.T) {
	small := version{generation: 1, parts: 8, size: 400 << 10, marker: true}
	large := version{generation: 1, parts: 6, size: 5<<20 + 256<<10} // a new object every 2 s
	for _, c := range []struct {
		name, options string
		data          version
	}{
		{"small files", oneByOne, small},
		{"parallel uploads in parts without a marker", inParallel, large},
		{"finished blocks", oneByOne, version{generation: 1, parts: 8, size: 400 << 10, built: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := inBucket(process.Recap(t), c.data)
			b.copied("the upload", func() { b.aws(b, c.options, b.from) })
			b.waitWhole(2)
			b.judge(false)
			b.quiet()
		})
	}
}

// TestSlowObject uploads a version, one object of which takes longer than settle: until it is there, nothing tells of it. A part of the
// version may be served; in the end it is all of it.
func TestSlowObject(t *testing.T) {
	for _, marker := range []bool{false, true} {
		t.Run(fmt.Sprintf("marker=%v", marker), func(t *testing.T) {
			t.Parallel()
			b := inBucket(process.Recap(t), version{generation: 1, parts: 5, size: 400 << 10, slow: 15 << 20, marker: marker})
			b.copied("the upload", func() {
				b.aws(b, "max_concurrent_requests = 2:multipart_threshold = 5MB:multipart_chunksize = 5MB:max_bandwidth = 1MB/s", b.from)
			})
			b.waitWhole(2)
			b.judge(true)
			if len(b.absent) > 0 {
				b.differs()
			}
		})
	}
}

// TestObjectsInPlace uploads other objects of the same sizes over those of a served version.
func TestObjectsInPlace(t *testing.T) {
	t.Parallel()
	b := inBucket(process.Recap(t), version{generation: 1, parts: 8, size: 400 << 10})
	b.PutTree(t, prefix+"2", b.from)
	b.waitWhole(2)
	third := b.old.next().next().write(t, filepath.Join(t.TempDir(), "3"))
	b.copied("the upload", func() { b.aws(b, oneByOne, third) })
	b.waitWhole(3)
	b.judge(false)
	b.differs()
}

// TestOldObjects starts a node in front of objects without a marker that have been there for years, by the server's clock, with a settle
// that is longer than the test. They are served at once, although a copy tool has left a temporary file behind, which is said.
func TestOldObjects(t *testing.T) {
	t.Parallel()
	const left = ".part-00009.Ab3dEf"
	b := startServer(t)
	v := version{generation: 1, parts: 4, size: 1000}
	dir := v.write(t, filepath.Join(t.TempDir(), "1"))
	expect.NoError(t, os.WriteFile(filepath.Join(dir, left), []byte("SEQ"), 0o644))
	b.PutTree(t, prefix+"1", dir)
	years := time.Date(2019, 3, 4, 5, 6, 7, 0, time.UTC)
	err := filepath.WalkDir(filepath.Join(b.disk, gateway.Bucket), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			setTime(t, path, years)
		}
		return err
	})
	expect.NoError(t, err)
	c := b.configure(t)
	c.Extra = "settle = \"10m\"\nrequire_success_file = \"auto\""
	node := process.Serve(t, c, db, "1")
	node.WaitLog(t, left)
}
