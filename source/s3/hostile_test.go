package s3_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/source"
)

// TestBadAnswers uses servers that send invalid responses.
func TestBadAnswers(t *testing.T) {
	page := func(inside string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `<?xml version="1.0"?><ListBucketResult>%s</ListBucketResult>`, inside)
		}
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"more, and no token":       {page(`<IsTruncated>true</IsTruncated>`), "without a continuation token"},
		"the same token":           {page(`<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>`), "without a continuation token"},
		"a key somewhere else":     {page(`<Contents><Key>q/db/1</Key></Contents>`), `listed "q/db/1", which does not have the prefix`},
		"a directory elsewhere":    {page(`<CommonPrefixes><Prefix>q/db/</Prefix></CommonPrefixes>`), `listed "q/db/", which does not have the prefix`},
		"a key twice":              {page(strings.Repeat(`<Contents><Key>p/a</Key><ETag>x</ETag><LastModified>2026-01-31T10:00:00Z</LastModified></Contents>`, 2)), `listed "p/a" twice`},
		"an encoding that is none": {page(`<EncodingType>url</EncodingType><Contents><Key>p/%zz</Key></Contents>`), `listed "p/%zz"`},
		"no XML":                   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>Welcome") }, "s3://bucket/p/"},
		"another region": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-3")
			w.WriteHeader(http.StatusMovedPermanently)
			fmt.Fprint(w, `<Error><Code>PermanentRedirect</Code></Error>`)
		}, "the bucket is in region eu-west-3, but the request was sent to us-east-1"},
		"ids": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amz-Request-Id", "4711")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `<Error><Code>SlowDown</Code><Message>Later.</Message></Error>`)
		}, "s3://bucket/p/: status 503: SlowDown: Later."},
		"a proxy's 404": {http.NotFound, "s3://bucket/p/"},
	} {
		server := httptest.NewServer(test.answer)
		o := options(server.URL, "p")
		o.MaxRetries = -1
		dbs, err := source.Databases(t.Context(), open(t, o))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v, want %q", name, dbs, err, test.want)
		}
		server.Close()
	}
}

// TestLastingError: an error that lasts is the same one each time, so that it is logged once.
func TestLastingError(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"half a listing": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amz-Request-Id", rand.Text())
			w.Header().Set("X-Amz-Id-2", rand.Text())
			fmt.Fprint(w, `<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><Cont`)
		},
		"a broken connection": func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.(*net.TCPConn).SetLinger(0) //nolint:errcheck,gosec // then it ends in another way
			conn.Close()
		},
	} {
		server := httptest.NewServer(answer)
		o := options(server.URL, "p")
		o.MaxRetries = -1
		src := open(t, o)
		_, first := source.Databases(t.Context(), src)
		_, second := source.Databases(t.Context(), src)
		if first == nil || second == nil || first.Error() != second.Error() {
			t.Errorf("%s:\n%v\n%v", name, first, second)
		}
		server.Close()
	}
}

// TestEncodedKeys has servers that encode keys, and one that does not.
func TestEncodedKeys(t *testing.T) {
	for _, test := range []struct{ encoding, key, want string }{
		{"<EncodingType>url</EncodingType>", "p/db/1/a%01%2B%25+b%26amp%3B%C3%A9%FF", "a\x01+% b&amp;é\xff"},
		{"<EncodingType>url</EncodingType>", "p%2Fdb%2F1%2Fpart-00000", "part-00000"},
		{"", "p/db/1/a+b%20", "a+b%20"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.URL.Query().Get("encoding-type"); got != "url" {
				t.Errorf("asked for the encoding %q", got)
			}
			fmt.Fprintf(w, `<?xml version="1.0"?><ListBucketResult>%s<Contents><Key>%s</Key><Size>1</Size><ETag>"tag"</ETag><LastModified>2026-01-31T10:00:00Z</LastModified></Contents></ListBucketResult>`, test.encoding, test.key)
		}))
		contents, err := open(t, options(server.URL, "p")).Contents(t.Context(), "db", "1")
		files := contents.Files
		if err != nil || len(files) != 1 || files[0].Name != test.want {
			t.Errorf("%s: %+v, %v, want %q", test.key, files, err, test.want)
		}
		server.Close()
	}
}

// TestEncodedDirectories has a directory whose name no XML can have. It is invalid, and the others are there.
func TestEncodedDirectories(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := "&#x1;" // as servers have it that are not asked to encode
		if r.URL.Query().Get("encoding-type") == "url" {
			control = "%01"
			fmt.Fprint(w, `<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType>`)
		} else {
			fmt.Fprint(w, `<?xml version="1.0"?><ListBucketResult>`)
		}
		fmt.Fprintf(w, `<CommonPrefixes><Prefix>p/bad%sdb/</Prefix></CommonPrefixes><CommonPrefixes><Prefix>p/good/</Prefix></CommonPrefixes></ListBucketResult>`, control)
	}))
	defer server.Close()
	src := open(t, options(server.URL, "p"))
	if dbs, err := source.Databases(t.Context(), src); err != nil || len(dbs) != 1 || dbs[0] != "good" {
		t.Errorf("databases %q, %v", dbs, err)
	}
	if in, err := source.ListNames(t.Context(), src, ""); err != nil || len(in.Invalid) != 1 || in.Invalid[0] != "bad\x01db" {
		t.Errorf("invalid databases %q, %v", in.Invalid, err)
	}
}

// TestBadObjects has servers that answer requests for parts with something
// else. The object has a megabyte.
func TestBadObjects(t *testing.T) {
	const size = 1 << 20
	good := func(r *http.Request, h http.Header) (from, to int64) {
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
		h.Set("ETag", `"a"`)
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, size))
		h.Set("Last-Modified", "Fri, 02 Jan 2026 10:00:00 GMT")
		return from, to
	}
	for name, test := range map[string]struct {
		spoil func(from int64, h http.Header) // of answers
		want  error                           // nil is any
	}{
		"If-Match without effect": {func(from int64, h http.Header) {
			if from > 0 {
				h.Set("ETag", `"b"`)
			}
		}, source.ErrChanged},
		"no ETag, another time": {func(from int64, h http.Header) {
			h.Del("ETag")
			if from > 0 {
				h.Set("Last-Modified", "Fri, 02 Jan 2026 10:00:01 GMT")
			}
		}, source.ErrChanged},
		"another part":     {func(from int64, h http.Header) { h.Set("Content-Range", fmt.Sprintf("bytes 7-8/%d", size)) }, nil},
		"no Content-Range": {func(from int64, h http.Header) { h.Del("Content-Range") }, nil},
		"nonsense":         {func(from int64, h http.Header) { h.Set("Content-Range", "bytes x-y/z") }, nil},
		"negative":         {func(from int64, h http.Header) { h.Set("Content-Range", "bytes 0-1/-5") }, nil},
		"unknown length":   {func(from int64, h http.Header) { h.Set("Content-Range", "bytes 0-1/*") }, nil},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "_SYMLINK") {
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
				return
			}
			from, to := good(r, w.Header())
			test.spoil(from, w.Header())
			w.Header().Set("Content-Length", fmt.Sprint(min(to, size-1)-from+1))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(make([]byte, min(to, size-1)-from+1))
		}))
		o := options(server.URL, "p")
		o.MaxRetries = -1
		f, err := open(t, o).Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		n := 0
		if err == nil {
			var b []byte
			b, err = io.ReadAll(f)
			n = len(b)
			f.Close()
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %d bytes, %v, want %v", name, n, err, test.want)
		}
		server.Close()
	}
}
