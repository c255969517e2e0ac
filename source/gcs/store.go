package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"sequins/source/objects"
)

type store struct {
	bucket, endpoint string           // scheme and host of the server
	pipeline         runtime.Pipeline // sends requests, and repeats those with a temporary error
	tokens           *tokens          // nil for requests without credentials
}

// URL returns the URL of a key.
func (s *store) URL(key string) string { return "gs://" + s.bucket + "/" + key }

// newRequest returns a request about the objects of the bucket, or about one of them.
func (s *store) newRequest(ctx context.Context, method, api, key string, query url.Values) (*policy.Request, error) {
	target := s.endpoint + api + "/storage/v1/b/" + url.PathEscape(s.bucket) + "/o"
	if key != "" {
		target += "/" + url.PathEscape(key)
	}
	return runtime.NewRequest(ctx, method, target+"?"+query.Encode())
}

// send sends a request. An answer without success is an error. Only Google's servers know that an object does not exist.
func (s *store) send(req *policy.Request) (*http.Response, error) {
	resp, err := s.pipeline.Do(req)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	said, fromStore := describe(resp)
	meaning := objects.Meaning(resp.StatusCode)
	if resp.StatusCode == http.StatusNotFound && fromStore {
		meaning = fs.ErrNotExist
	}
	who := "anonymously"
	if s.tokens != nil {
		_, from := s.tokens.known()
		who = "with " + from
	}
	return nil, objects.Explain(meaning, said, who)
}

// describe returns the status and the message of an answer, and whether it is the store's rather than from a proxy before it.
func describe(resp *http.Response) (said string, fromStore bool) {
	text, _ := runtime.Payload(resp) // the pipeline has read it
	var told struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	isHTML := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html")
	message := ""
	switch {
	case json.Unmarshal(text, &told) == nil && told.Error.Code == resp.StatusCode:
		message, fromStore = told.Error.Message, true
	case resp.Header.Get("X-Guploader-Uploadid") != "" || !isHTML:
		message, fromStore = string(text), true
	}
	said = fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if message = objects.OneLine(message); message != "" {
		said += ": " + message
	}
	return said, fromStore
}

// List returns a page of a listing. The time of an object is that of its creation: other times change when its metadata do.
func (s *store) List(ctx context.Context, prefix string, deep bool, token string) (p objects.Page, err error) {
	query := url.Values{"prefix": {prefix}, "fields": {"kind,nextPageToken,prefixes,items(name,size,timeCreated,generation,md5Hash)"}}
	if !deep {
		query.Set("delimiter", "/")
	}
	if token != "" {
		query.Set("pageToken", token)
	}
	var page struct {
		Kind     string     `json:"kind"`
		Next     string     `json:"nextPageToken"`
		Prefixes []string   `json:"prefixes"`
		Items    []struct { // numbers of 64 bits are strings
			Name       string    `json:"name"`
			Size       string    `json:"size"`
			Created    time.Time `json:"timeCreated"`
			Generation string    `json:"generation"`
			MD5        string    `json:"md5Hash"`
		} `json:"items"`
	}
	req, err := s.newRequest(ctx, http.MethodGet, "", "", query)
	if err != nil {
		return p, err
	}
	resp, err := s.send(req)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	p.Now, _ = http.ParseTime(resp.Header.Get("Date"))
	text, err := runtime.Payload(resp)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return p, fmt.Errorf("an answer that is no JSON: %w", err)
	}
	if page.Kind+page.Next == "" && len(page.Items)+len(page.Prefixes) == 0 { // an empty listing says what it is
		return p, errors.New("the server sent no listing")
	}
	p.Dirs, p.More, p.Next = page.Prefixes, page.Next != "", page.Next
	for _, item := range page.Items {
		size, err := strconv.ParseInt(item.Size, 10, 64)
		if err != nil {
			return p, fmt.Errorf("the server listed %q with %q bytes", item.Name, item.Size)
		}
		object := objects.Object{Key: item.Name, Size: size, Modified: item.Created, Written: item.Created, ID: item.Generation}
		if item.MD5 != "" { // an object that was composed of others has none
			object.Sum = "md5 " + item.MD5
		}
		p.Objects = append(p.Objects, object)
	}
	return p, nil
}

// Get requests an object.
func (s *store) Get(ctx context.Context, key, id string, offset, n int64) (*objects.Body, error) {
	query := url.Values{"alt": {"media"}}
	if id != "" {
		query.Set("ifGenerationMatch", id)
	}
	req, err := s.newRequest(ctx, http.MethodGet, "", key, query)
	if err != nil {
		return nil, err
	}
	runtime.SkipBodyDownload(req)
	req.Raw().Header.Set("Accept-Encoding", "gzip") // as it is stored
	if n >= 0 {
		req.Raw().Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+n-1))
	}
	resp, err := s.send(req)
	if err != nil {
		return nil, err
	}
	b := &objects.Body{ReadCloser: resp.Body, ID: resp.Header.Get("X-Goog-Generation")}
	b.Offset, b.Size, err = objects.Extent(resp.StatusCode == http.StatusOK, resp.Header.Get("Content-Range"), &resp.ContentLength)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return b, nil
}

// Put writes an object.
func (s *store) Put(ctx context.Context, key string, data []byte) error {
	req, err := s.newRequest(ctx, http.MethodPost, "/upload", "", url.Values{"uploadType": {"media"}, "name": {key}})
	if err != nil {
		return err
	}
	if err := req.SetBody(streaming.NopCloser(bytes.NewReader(data)), "application/octet-stream"); err != nil {
		return err
	}
	resp, err := s.send(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
