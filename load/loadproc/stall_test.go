package loadproc

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"sequins/load"
	"sequins/source"
	"sequins/test/expect"
)

// A hangingSource hangs until release is closed: in Contents, or in the third read of each file.
type hangingSource struct {
	source.Source
	contents bool
	release  chan struct{}
}

func (s hangingSource) Contents(context.Context, string, string) (source.Contents, error) {
	if s.contents {
		<-s.release
	}
	return source.Contents{}, nil
}

func (s hangingSource) Open(context.Context, string, string, source.File, source.ReadOptions) (io.ReadCloser, error) {
	return &hangingFile{release: s.release}, nil
}

func (s hangingSource) Path(db, version string) string { return db + "/" + version }

type hangingFile struct {
	reads   int
	release chan struct{}
}

func (f *hangingFile) Read([]byte) (int, error) {
	if f.reads++; f.reads == 3 {
		<-f.release
	}
	time.Sleep(time.Minute)
	return 1, nil
}

func (f *hangingFile) Close() error { return nil }

// A process whose source hangs ends, and says that it was the source; one whose source is slow, or that asks nothing of
// it, goes on.
func TestSourceThatHangs(t *testing.T) {
	const maxStall = 10 * time.Minute // of package load
	read := func(l *load.Loader) {
		f, _ := l.Open(t.Context(), &load.Plan{DB: "db", Version: "1"}, source.File{}, 0)
		_, _ = io.CopyN(io.Discard, f, 3)
	}
	for name, test := range map[string]struct {
		source hangingSource
		use    func(l *load.Loader)
		want   time.Duration // 0: it does not end
	}{
		"in a listing": {hangingSource{contents: true}, func(l *load.Loader) { _, _ = l.Plan(t.Context(), "db", "1") }, maxStall},
		"in a file":    {hangingSource{}, read, maxStall + 2*time.Minute},
		"at rest":      {hangingSource{}, func(*load.Loader) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.source.release = make(chan struct{})
				var out bytes.Buffer
				var ended time.Duration
				began, done := time.Now(), make(chan struct{})
				w := newWorker(&out, nil)
				w.exit = func(int) { ended = time.Since(began) }
				loader := load.New(test.source, nil, load.Options{})
				w.loader.Store(loader)
				go test.use(loader)
				go w.report(done)
				time.Sleep(3 * maxStall)
				close(done)
				close(test.source.release)
				time.Sleep(2 * time.Minute) // the last read ends
				synctest.Wait()
				if ended < test.want || ended > test.want+reportPeriod {
					t.Errorf("it ended after %v, want %v", ended, test.want)
				}
				lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
				lr := newLineReader(bytes.NewReader(append(lines[len(lines)-1], '\n')))
				var e event
				expect.NoError(t, lr.next(&e))
				if failed := e.Ended != nil; failed != (test.want > 0) || failed && !load.Passing(e.Ended.Failure) {
					t.Errorf("its last words: %+v", e)
				}
			})
		})
	}
}
