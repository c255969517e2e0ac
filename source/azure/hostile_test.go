package azure_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/source"
)

// page returns a page of a listing.
func page(inside, next string) string {
	return `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://x/" ContainerName="bucket"><Blobs>` + inside +
		`</Blobs><NextMarker>` + next + `</NextMarker></EnumerationResults>`
}

func blobItem(name, size string) string {
	return "<Blob><Name>" + name + "</Name><Properties><Last-Modified>Fri, 02 Jan 2026 10:00:00 GMT</Last-Modified><Etag>0x1</Etag><Content-Length>" + size +
		"</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
}

func prefixItem(name string) string { return "<BlobPrefix><Name>" + name + "</Name></BlobPrefix>" }

// TestHostileListings has servers whose listings are wrong.
func TestHostileListings(t *testing.T) {
	for name, test := range map[string]struct{ page, want string }{
		"the same token":      {page("", "x"), "without a continuation token"},
		"elsewhere":           {page(blobItem("q/db/1/x", "1"), ""), `listed "q/db/1/x", which does not have the prefix`},
		"directory elsewhere": {page(prefixItem("q/"), ""), `listed "q/", which does not have the prefix`},
		"negative":            {page(blobItem("p/db/1/x", "-1"), ""), "with -1 bytes"},
		"too large":           {page(blobItem("p/db/1/x", "99999999999999999999"), ""), "p/db/1/"},
		"no size":             {page("<Blob><Name>p/db/1/x</Name><Properties></Properties></Blob>", ""), "without its size, time or ETag"},
		"no properties":       {page("<Blob><Name>p/db/1/x</Name></Blob>", ""), "without its size, time or ETag"},
		"no listing":          {`<?xml version="1.0"?><EnumerationResults></EnumerationResults>`, "no listing"},
		"no XML":              {"<p>Welcome", "p/db/1/"},
		"nothing":             {"", "p/db/1/"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(w, test.page)
		}))
		o := options(server.URL+"/devstoreaccount1", "p")
		o.MaxRetries = -1
		c, err := open(t, o).Contents(t.Context(), "db", "1")
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), ".dfs.core.windows.net/p/db/1/") {
			t.Errorf("%s: %v, %v, want %q", name, c, err, test.want)
		}
		server.Close()
	}
}

// TestPages lists several pages, some of them empty, over answers of which every second one is cut.
func TestPages(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		if n++; n%2 == 1 {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, page("", "")[:50])
			return
		}
		number := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("marker"), "page %d", &number)
		items, next := "", ""
		if number != 2 {
			items = prefixItem(fmt.Sprintf("p/db/v%d/", number)) + blobItem(fmt.Sprintf("p/db/..%d", number), "1") + prefixItem("p/db/../")
		}
		if number < 4 {
			next = fmt.Sprintf("page %d", number+1)
		}
		_, _ = io.WriteString(w, page(items, next))
	}))
	defer server.Close()
	versions, err := source.Versions(t.Context(), open(t, options(server.URL+"/devstoreaccount1", "p")), "db")
	if err != nil || strings.Join(versions, " ") != "v0 v1 v3 v4" {
		t.Errorf("%v, %v", versions, err)
	}
}

// TestEndlessAnswer: an answer that does not end is not read for ever.
func TestEndlessAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, `<?xml version="1.0"?><EnumerationResults>`)
		some := []byte(strings.Repeat(" ", 1<<20))
		for {
			if _, err := w.Write(some); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	o := options(server.URL+"/devstoreaccount1", "p")
	o.MaxRetries = -1
	if _, err := source.Databases(t.Context(), open(t, o)); err == nil || !strings.Contains(err.Error(), "an answer of more than") {
		t.Errorf("%v", err)
	}
}

// TestHierarchicalNamespace: as an account with a hierarchical namespace answers, directories are prefixes, and are among the blobs of
// a flat listing without metadata.
func TestHierarchicalNamespace(t *testing.T) {
	directory := func(name string) string {
		return strings.Replace(blobItem(name, "0"), "<BlobType>", "<ResourceType>directory</ResourceType><BlobType>", 1)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/devstoreaccount1/bucket/")
		prefix, q := r.URL.Query().Get("prefix"), r.URL.Query()
		switch {
		case q.Get("comp") == "list" && prefix == "p/db/2/": // which is empty
			_, _ = io.WriteString(w, page("", ""))
		case q.Get("comp") == "list" && q.Get("delimiter") != "":
			_, _ = io.WriteString(w, page(blobItem("p/db/1/part-0", "1")+prefixItem("p/db/1/day=1/")+prefixItem("p/db/1/_logs/"), ""))
		case q.Get("comp") == "list":
			_, _ = io.WriteString(w, page(directory("p/db/1/_logs")+directory("p/db/1/day=1")+blobItem("p/db/1/day=1/part-0", "1")+blobItem("p/db/1/part-0", "1"), ""))
		case r.Method == http.MethodHead && (name == "p/db/1" || name == "p/db/2"):
			w.Header().Set("X-Ms-Meta-Hdi_isfolder", "true")
		default:
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	src := open(t, options(server.URL+"/devstoreaccount1", "p"))
	c, err := src.Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != 2 || c.Files[0].Name != "day=1/part-0" || c.Files[1].Name != "part-0" || len(c.Dirs) > 0 || len(c.Hidden) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := src.Contents(t.Context(), "db", "2"); err != nil || len(c.Files) > 0 {
		t.Errorf("an empty directory: %+v, %v", c, err)
	}
}
