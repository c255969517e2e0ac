package main

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"sequins/blocks"
)

// serveForever runs one of the Go servers that sequins is compared with.
func serveForever(kind, dir, addr string) error {
	switch kind {
	case "fasthttp":
		s := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBody(constantBody()) }}
		return s.ListenAndServe(addr)
	case "nethttp":
		return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, constantBody()) }))
	case "lookup":
		blocks, err := filepath.Glob(filepath.Join(dir, "*", "*.block"))
		if err != nil || len(blocks) != 1 {
			return fmt.Errorf("%s: %d blocks, want one, %w", dir, len(blocks), err)
		}
		l, err := newLookup(blocks[0])
		if err != nil {
			return err
		}
		return http.ListenAndServe(addr, l)
	}
	return fmt.Errorf("no server of kind %q", kind)
}

// lookup answers from a block, with nothing around it: no versions, no metrics, no headers of its own.
type lookup struct {
	r       *blocks.Reader
	scratch sync.Pool // of *blocks.Scratch
}

func newLookup(name string) (*lookup, error) {
	r, err := blocks.Open(name)
	return &lookup{r: r, scratch: sync.Pool{New: func() any { return new(blocks.Scratch) }}}, err
}

func (l *lookup) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s := l.scratch.Get().(*blocks.Scratch)
	defer l.scratch.Put(s)
	v, ok, err := l.r.Get([]byte(path.Base(req.URL.Path)), s)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case !ok:
		http.NotFound(w, req)
	default:
		w.Header().Set("Content-Length", strconv.FormatInt(v.Len(), 10))
		section := v.Section(0, v.Len())
		defer section.Close()
		_, _ = io.Copy(w, section)
	}
}

// answer writes a body. Whether the client gets it is the client's to say.
func answer(w http.ResponseWriter, body []byte) { _, _ = w.Write(body) }
