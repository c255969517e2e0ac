package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sequins/source"
	"sequins/source/objects"
)

// upload is a resumable upload. One that is not completed is removed by GCS after a week.
type upload struct {
	*store
	key     string
	size    int64
	session string // its target at the server
	sent    int64  // bytes that the server has
	sum     uint32 // CRC-32C of all parts
}

// statusDeleted is the answer to the removal of an upload.
const statusDeleted = 499

// Upload begins an upload.
func (s *store) Upload(ctx context.Context, key string, size int64) (objects.Upload, error) {
	head, err := json.Marshal(map[string]string{"name": key, "contentType": "application/octet-stream"})
	if err != nil {
		return nil, err
	}
	resp, err := s.do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := s.newRequest(ctx, http.MethodPost, s.target("/upload", "", url.Values{"uploadType": {"resumable"}}), bytes.NewReader(head))
		if err == nil {
			req.Header.Set("Content-Type", "application/json; charset=UTF-8")
			req.Header.Set("X-Upload-Content-Length", strconv.FormatInt(size, 10))
		}
		return req, err
	})
	if err != nil {
		return nil, s.explain(err)
	}
	session, ours := strings.CutPrefix(resp.Header.Get("Location"), s.endpoint+"/")
	if err := closeBody(resp); err != nil {
		return nil, err
	}
	if !ours { // the token must not be sent to another server
		return nil, errors.New("the server names no place for the upload, or one at another server")
	}
	return &upload{store: s, key: key, size: size, session: "/" + session}, nil
}

// Part sends a part.
func (u *upload) Part(ctx context.Context, data []byte) error {
	_, err := u.send(ctx, data)
	return err
}

// Complete sends the last part. If the server then has something else than what was sent, the object is removed again.
func (u *upload) Complete(ctx context.Context, last []byte) error {
	made, err := u.send(ctx, last)
	if err != nil {
		return err
	}
	if made == nil {
		return fmt.Errorf("the server has %d bytes and no object", u.sent)
	}
	if got := decodeCRC(made.CRC32C); got == nil || *got != u.sum || made.Size != strconv.FormatInt(u.size, 10) {
		err := fmt.Errorf("%w: sent %d bytes with CRC-32C %s, stored %s with %s", source.ErrCorrupt, u.size, encodeCRC(u.sum), made.Size, made.CRC32C)
		return errors.Join(err, u.remove(ctx, made.Generation))
	}
	return nil
}

// send sends a part, from where the server says that it has ended if an attempt fails. It returns the object if that is
// complete.
func (u *upload) send(ctx context.Context, data []byte) (*resource, error) {
	begin := u.sent
	u.sum = crc32.Update(u.sum, castagnoli, data)
	for failed := 0; ; {
		made, err := u.put(ctx, data[u.sent-begin:])
		if err == nil && (made != nil || u.sent == begin+int64(len(data))) {
			return made, nil
		}
		if failed++; failed > u.maxRetries || ctx.Err() != nil || err != nil && !temporary(err) {
			return nil, u.explain(errors.Join(err, fmt.Errorf("%d bytes of a part of %d were taken", u.sent-begin, len(data))))
		}
		if err := u.pause(ctx, failed, err); err != nil {
			return nil, err
		}
		if made, err = u.ask(ctx); err != nil || made != nil {
			return made, err
		}
		if u.sent < begin || u.sent > begin+int64(len(data)) {
			return nil, fmt.Errorf("the server has %d bytes after it had %d", u.sent, begin)
		}
	}
}

// put sends the rest of a part once.
func (u *upload) put(ctx context.Context, data []byte) (*resource, error) {
	refreshed := false
	resp, err := u.once(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := u.newRequest(ctx, http.MethodPut, u.session, bytes.NewReader(data))
		if err == nil {
			req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", u.sent, u.sent+int64(len(data))-1, u.size))
		}
		return req, err
	}, &refreshed, []int{http.StatusPermanentRedirect})
	if err != nil {
		return nil, err
	}
	return u.result(resp)
}

// ask asks how much the server has.
func (u *upload) ask(ctx context.Context) (*resource, error) {
	resp, err := u.do(ctx, func(ctx context.Context) (*http.Request, error) {
		req, err := u.newRequest(ctx, http.MethodPut, u.session, nil)
		if err == nil {
			req.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", u.size))
		}
		return req, err
	}, http.StatusPermanentRedirect)
	if err != nil {
		return nil, u.explain(err)
	}
	return u.result(resp)
}

// result takes how much the server has, or the object, from an answer.
func (u *upload) result(resp *http.Response) (*resource, error) {
	if resp.StatusCode != http.StatusPermanentRedirect {
		var made resource
		err := json.NewDecoder(resp.Body).Decode(&made)
		return &made, errors.Join(err, resp.Body.Close())
	}
	u.sent = 0
	if said := resp.Header.Get("Range"); said != "" {
		last, err := strconv.ParseInt(strings.TrimPrefix(said, "bytes=0-"), 10, 64)
		if err != nil || last < 0 || last >= u.size {
			return nil, errors.Join(permanent{fmt.Errorf("invalid Range %q in the answer to an upload", said)}, resp.Body.Close())
		}
		u.sent = last + 1
	}
	return nil, closeBody(resp)
}

// remove removes a generation of the object.
func (u *upload) remove(ctx context.Context, generation string) error {
	resp, err := u.do(ctx, func(ctx context.Context) (*http.Request, error) {
		return u.newRequest(ctx, http.MethodDelete, u.target("", u.key, url.Values{"ifGenerationMatch": {generation}}), nil)
	})
	if err != nil {
		return u.explain(err)
	}
	return closeBody(resp)
}

// Abort removes the upload.
func (u *upload) Abort(ctx context.Context) error {
	resp, err := u.do(ctx, func(ctx context.Context) (*http.Request, error) {
		return u.newRequest(ctx, http.MethodDelete, u.session, nil)
	}, statusDeleted)
	if err = u.explain(err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return closeBody(resp)
}
