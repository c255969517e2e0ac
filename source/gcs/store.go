package gcs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sequins/source"
	"sequins/source/objects"
)

// store is a bucket.
type store struct {
	client
	bucket string
	conns  *objects.Connections
}

// URL returns the URL of a key.
func (s *store) URL(key string) string { return "gs://" + s.bucket + "/" + key }

// Close closes the connections.
func (s *store) Close() error {
	s.conns.Close()
	return nil
}

// target returns the path of the bucket's objects, or of an object, with a query.
func (s *store) target(api, key string, query url.Values) string {
	target := api + "/storage/v1/b/" + url.PathEscape(s.bucket) + "/o"
	if key != "" {
		target += "/" + url.PathEscape(key)
	}
	return target + "?" + query.Encode()
}

// resource is the description of an object. Numbers of 64 bits are strings.
type resource struct {
	Name       string    `json:"name"`
	Size       string    `json:"size"`
	Created    time.Time `json:"timeCreated"`
	Generation string    `json:"generation"`
	MD5        string    `json:"md5Hash"`
	CRC32C     string    `json:"crc32c"`
}

// List returns a page of a listing. The time of an object is that of its creation: other times change when its metadata do.
func (s *store) List(ctx context.Context, prefix string, deep bool, token string) (p objects.Page, err error) {
	query := url.Values{"prefix": {prefix}, "fields": {"nextPageToken,prefixes,items(name,size,timeCreated,generation)"}}
	if !deep {
		query.Set("delimiter", "/")
	}
	if token != "" {
		query.Set("pageToken", token)
	}
	var page struct {
		Next     string     `json:"nextPageToken"`
		Prefixes []string   `json:"prefixes"`
		Items    []resource `json:"items"`
	}
	if p.Now, err = s.getJSON(ctx, s.target("", "", query), &page); err != nil {
		return p, err
	}
	p.Dirs, p.More, p.Next = page.Prefixes, page.Next != "", page.Next
	for _, item := range page.Items {
		size, err := strconv.ParseInt(item.Size, 10, 64)
		if err != nil {
			return p, fmt.Errorf("the server listed %q with %q bytes", item.Name, item.Size)
		}
		if item.Generation == "" || item.Created.IsZero() {
			return p, fmt.Errorf("the server listed %q without its generation or time", item.Name)
		}
		p.Objects = append(p.Objects, objects.Object{Key: item.Name, Size: size, Modified: item.Created, Written: item.Created, ID: item.Generation})
	}
	return p, nil
}

// getJSON requests a description, and returns the server's time. A body that ends early is requested again.
func (s *store) getJSON(ctx context.Context, target string, into any) (now time.Time, err error) {
	for failed := 0; ; {
		resp, err := s.do(ctx, func(ctx context.Context) (*http.Request, error) {
			return s.newRequest(ctx, http.MethodGet, target, nil)
		})
		if err != nil {
			return now, s.explain(err)
		}
		now, _ = http.ParseTime(resp.Header.Get("Date"))
		text, err := io.ReadAll(resp.Body)
		err = errors.Join(err, resp.Body.Close())
		if err == nil {
			if err = json.Unmarshal(text, into); err != nil {
				err = fmt.Errorf("an answer that is no JSON: %w", err)
			}
			return now, err
		}
		if failed++; failed > s.maxRetries || ctx.Err() != nil || int64(len(text)) >= objects.MaxAnswer {
			return now, err
		}
		if err := s.pause(ctx, failed, err); err != nil {
			return now, err
		}
	}
}

// Get requests an object.
func (s *store) Get(ctx context.Context, key, id string, offset, n int64) (*objects.Body, error) {
	query := url.Values{"alt": {"media"}}
	if id != "" {
		query.Set("ifGenerationMatch", id)
	}
	resp, err := s.do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := s.newRequest(ctx, http.MethodGet, s.target("", key, query), nil)
		if err == nil {
			req.Header.Set("Accept-Encoding", "gzip") // as it is stored
			if n >= 0 {
				req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+n-1))
			}
		}
		return req, err
	}, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return nil, s.explain(err)
	}
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return nil, errors.Join(objects.ErrRange, closeBody(resp))
	}
	b := &objects.Body{ReadCloser: resp.Body, ID: resp.Header.Get("X-Goog-Generation"), CRC32C: hashOf(resp.Header)}
	b.Offset, b.Size, err = objects.Extent(resp.StatusCode == http.StatusOK, resp.Header.Get("Content-Range"), resp.ContentLength)
	if err == nil && id != "" && b.ID != id {
		err = fmt.Errorf("%w: generation %s was requested, and the server sent %q", source.ErrChanged, id, b.ID)
	}
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return b, nil
}

// hashOf returns the CRC-32C of the whole object, which is in the headers of every answer; nil if it is not.
func hashOf(h http.Header) *uint32 {
	for _, value := range h.Values("X-Goog-Hash") {
		for hash := range strings.SplitSeq(value, ",") {
			if encoded, ok := strings.CutPrefix(strings.TrimSpace(hash), "crc32c="); ok {
				return decodeCRC(encoded)
			}
		}
	}
	return nil
}

// decodeCRC decodes a CRC-32C as GCS writes it; nil if it is none.
func decodeCRC(encoded string) *uint32 {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) != 4 {
		return nil
	}
	sum := binary.BigEndian.Uint32(b)
	return &sum
}

// encodeCRC encodes a CRC-32C as GCS writes it.
func encodeCRC(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Put writes an object. The server compares what it received with the CRC-32C.
func (s *store) Put(ctx context.Context, key string, data []byte, id string) error {
	query := url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {cmp.Or(id, "0")}}
	body, contentType, err := multipartBody(key, data)
	if err != nil {
		return err
	}
	resp, err := s.do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := s.newRequest(ctx, http.MethodPost, s.target("/upload", "", query), bytes.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", contentType)
		}
		return req, err
	})
	if err != nil {
		return s.explain(err)
	}
	return closeBody(resp)
}

// multipartBody returns the body of a request that has the name, the checksum and the content of an object.
func multipartBody(key string, data []byte) (body []byte, contentType string, err error) {
	head, err := json.Marshal(map[string]string{"name": key, "crc32c": encodeCRC(crc32.Checksum(data, castagnoli)), "contentType": "application/octet-stream"})
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, part := range []struct {
		contentType string
		data        []byte
	}{{"application/json; charset=UTF-8", head}, {"application/octet-stream", data}} {
		into, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}})
		if err == nil {
			_, err = into.Write(part.data)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), "multipart/related; boundary=" + w.Boundary(), nil
}

// md5 returns the MD5 of a generation of an object, "" if there is none.
func (s *store) md5(ctx context.Context, key, generation string) (string, error) {
	var r resource
	query := url.Values{"fields": {"generation,md5Hash"}}
	if _, err := s.getJSON(ctx, s.target("", key, query), &r); err != nil {
		return "", err
	}
	if r.Generation != generation {
		return "", fmt.Errorf("%w: listed as generation %s, now %s", source.ErrChanged, generation, r.Generation)
	}
	return r.MD5, nil
}
