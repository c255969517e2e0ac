//go:build integration

package s3

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sequins/load"
	"sequins/shard"
	"sequins/source/s3"
	"sequins/store"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/sequencefiles"
	"sequins/test/speed"
)

// A ledger is a proxy in front of a gateway that records the requests.
type ledger struct {
	mu    sync.Mutex
	asked map[string]int64 // bytes of each object, by the last part of its key
}

// reset returns the requests since the last call.
func (l *ledger) reset() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = map[string]int64{}
	return asked
}

func (l *ledger) serve(t *testing.T, g *gateway.Gateway) (endpoint string) {
	upstream, err := url.Parse(g.Endpoint())
	expect.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Host = r.In.Host // which is signed
		},
		ModifyResponse: func(r *http.Response) error {
			if name := path.Base(r.Request.URL.Path); strings.HasPrefix(name, "part-") {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.asked[name] += r.ContentLength
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// TestOnlyWhatIsNeeded: of files that are partitioned like the version, a node reads those of its own
// partitions, each once, and of the others a sample. A metric counts the bytes.
func TestOnlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	const files, records, valueSize = 8, 8 * 1500, 1000
	want := []int{2, 5}
	g := gateway.Start(t)
	dir := t.TempDir()
	sizes := writeCut(t, dir, files, records, valueSize)
	g.PutTree(t, "db/1", dir)
	asked := &ledger{asked: map[string]int64{}}
	src, err := s3.New(t.Context(), s3.Options{
		URL: "s3://" + gateway.Bucket, Region: gateway.Region, Endpoint: asked.serve(t, g), PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	})
	expect.NoError(t, err)
	local, err := store.Open(filepath.Join(t.TempDir(), "store"))
	expect.NoError(t, err)
	defer local.Close()
	var progress load.Progress
	loader := load.New(src, &progress, load.Options{})
	plan, err := loader.Plan(t.Context(), "db", "1")
	expect.NoError(t, err)
	if !plan.Aligned || plan.Partitioner != shard.Hadoop {
		t.Fatalf("planned as %v, aligned %v", plan.Partitioner, plan.Aligned)
	}
	for name, n := range asked.reset() {
		if n > sizes[name]/2 {
			t.Errorf("to look at %s, %d of its %d bytes were asked for", name, n, sizes[name])
		}
	}
	sampled := progress.Snapshot().Fetched
	expect.NoError(t, speed.Load(t.Context(), loader, local, plan, want))
	var total int64
	got := asked.reset()
	for _, p := range want {
		name := fmt.Sprintf("part-r-%05d", p)
		if got[name] != sizes[name] {
			t.Errorf("of %s, %d bytes were asked for, and it has %d", name, got[name], sizes[name])
		}
		total += sizes[name]
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("of files that are not needed was asked for: %v", got)
	}
	if s := progress.Snapshot(); s.Bytes != total || s.BytesDone != total || s.Files != 2 || s.FilesDone != 2 {
		t.Errorf("the progress says %+v, and %d bytes were read", s, total)
	}
	if n := progress.Snapshot().Fetched - sampled; n != total || sampled == 0 {
		t.Errorf("%v bytes were counted, want %d; for the plan, %v", n, total, sampled)
	}
}

// writeCut writes SequenceFiles that are cut as MapReduce cuts them, and returns how large each is.
func writeCut(t *testing.T, dir string, files, records, valueSize int) map[string]int64 {
	t.Helper()
	expect.NoError(t, os.MkdirAll(dir, 0o755))
	sizes := map[string]int64{}
	for i := range files {
		name := fmt.Sprintf("part-r-%05d", i)
		var b bytes.Buffer
		w, err := sequencefiles.NewWriter(&b, sequencefiles.WriterOptions{})
		expect.NoError(t, err)
		for k := range records {
			if key := fmt.Appendf(nil, "key-%06d", k); shard.Hadoop.Partition(key, files) == i {
				expect.NoError(t, w.Append(key, fmt.Appendf(nil, "%0*d", valueSize, k)))
			}
		}
		expect.NoError(t, errors.Join(w.Close(), os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644)))
		sizes[name] = int64(b.Len())
	}
	return sizes
}
