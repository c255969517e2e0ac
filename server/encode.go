package server

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzhttp/writer/gzkp"
	"github.com/klauspost/compress/gzhttp/writer/zstdkp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sequins/server/internal/negotiate"
)

// Content codings. A client that accepts one gets its answer encoded if the answer has a minimum size, or one that is not known,
// and is not compressed already. Which answers are encoded depends on nothing else, so that HEAD and GET agree; only if too
// many answers are being encoded, further ones are not.
//
// An encoded representation has the ETag of the value, as a weak one: it is the same value in other bytes. If-None-Match
// compares weakly, so that a client revalidates either with the other's tag. Range, If-Range and If-Match are about bytes,
// and such requests get the value as it is.
//
// Blocks are no source of encoded values. A page is compressed as a whole and has many values, and the chunks of a large value
// are frames of their own, of which some decoders of zstd read only the first.

// Codings are the content codings that there are.
var Codings = []string{"zstd", "gzip"}

// maxEncoders is the number of encoders in use at a time. Each holds about 0.8 MiB while a slow client receives its answer.
const maxEncoders = 128

// encoder writes what is written to it in a content coding. Close returns it to a pool.
type encoder interface {
	io.WriteCloser
	// Flush writes all that is needed to decode what has been written.
	Flush() error
}

// negotiate finds the coding for the answer to a request.
func (w *writer) negotiate(req *http.Request) {
	r, h := w.r, req.Header
	accepted := h["Accept-Encoding"]
	if len(r.delivery.Codings) == 0 || len(accepted) == 0 || r.internal || h["Range"] != nil || h["If-Match"] != nil {
		return
	}
	w.coding = negotiate.Coding(strings.Join(accepted, ","), r.delivery.Codings...)
}

// encode encodes the answer, whose status and header are complete, if it is to be.
func (w *writer) encode() {
	h := w.Header()
	if w.coding == "" || h["Content-Encoding"] != nil {
		return
	}
	if w.r.code == http.StatusNotModified {
		weaken(h)
		return
	}
	length, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	if w.r.code != http.StatusOK || 0 <= length && length < w.r.delivery.MinEncoded || isCompressed(h.Get("Content-Type")) {
		return
	}
	if w.r.method != http.MethodHead {
		if w.r.s.encoding.Add(1) > maxEncoders {
			w.r.s.encoding.Add(-1)
			return
		}
		if w.coding == "zstd" {
			w.encoder = zstdkp.NewWriter(sender{w}, int(zstd.SpeedFastest))
		} else {
			w.encoder = gzkp.NewWriter(sender{w}, gzip.BestSpeed)
		}
	}
	w.encoded, w.length, w.flushed = true, length, time.Now()
	h.Set("Content-Encoding", w.coding)
	h.Del("Content-Length")
	h.Del("Accept-Ranges")
	weaken(h)
}

// weaken makes an ETag a weak one.
func weaken(h http.Header) {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		h["Etag"] = []string{"W/" + tag}
	}
}

// compressed begin the media types whose data is compressed, besides those that gzhttp knows.
var compressed = []string{
	"image/", "font/woff", "application/pdf", "application/java-archive", "application/vnd.rar", "application/x-lz4", "application/vnd.apache.parquet",
	"application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.",
}

// isCompressed reports whether data of a media type is compressed in itself.
func isCompressed(contentType string) bool {
	media := strings.ToLower(contentType)
	begins := func(prefix string) bool { return strings.HasPrefix(media, prefix) }
	return !gzhttp.DefaultContentTypeFilter(media) || slices.ContainsFunc(compressed, begins) && !begins("image/svg")
}

// sender sends what an encoder writes.
type sender struct{ w *writer }

func (s sender) Write(p []byte) (int, error) { return s.w.send(p) }

// An encoded answer is flushed at least after so many bytes, and so much time, so that a client receives it while it is
// written, as it does without a coding.
const (
	flushBytes = responseBuffer / 2
	flushTime  = 100 * time.Millisecond
)

func (w *writer) writeEncoded(p []byte) (int, error) {
	n, err := w.encoder.Write(p)
	w.unflushed += n
	if now := time.Now(); err == nil && (w.unflushed >= flushBytes || now.Sub(w.flushed) >= flushTime) {
		w.unflushed, w.flushed = 0, now
		if err = w.encoder.Flush(); err == nil {
			err = http.NewResponseController(w.ResponseWriter).Flush()
		}
	}
	w.broken = w.broken || err != nil
	return n, err
}

// endEncoding sends the end of an encoded answer, unless it broke off: then the encoder is left to the garbage collector, as Close would
// send an end.
func (w *writer) endEncoding() {
	if w.encoder == nil {
		return
	}
	if w.length >= 0 && w.taken != w.length {
		w.broken = true // net/http would see it by the Content-Length
	}
	if !w.broken {
		w.broken = w.encoder.Close() != nil
	}
	w.r.s.encoding.Add(-1)
	w.encoder = nil
}
