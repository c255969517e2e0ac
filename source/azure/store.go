package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sequins/source"
	"sequins/source/objects"
)

// folderMark is the key of the metadata of a directory, in lower case.
const folderMark = "hdi_isfolder"

type store struct {
	place
	client *container.Client
	asks   string   // the credentials, for messages
	hidden []string // secrets that no error may have
}

// List returns a page of a listing. The metadata tell directories from files.
func (s *store) List(ctx context.Context, prefix string, deep bool, token string) (p objects.Page, err error) {
	include := container.ListBlobsInclude{Metadata: true}
	xml := container.StorageResponseFormatXML // the other format is not compiled in: see internal/noarrow
	var marker *string
	if token != "" {
		marker = &token
	}
	var items []*container.BlobItem
	listed := false
	if deep {
		page, perr := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Marker: marker, Include: include, ResponseFormat: xml}).NextPage(ctx)
		err, p.Next, p.Now = perr, deref(page.NextMarker), deref(page.Date)
		if listed = page.Segment != nil; listed {
			items = page.Segment.BlobItems
		}
	} else {
		page, perr := s.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: marker, Include: include, ResponseFormat: xml}).NextPage(ctx)
		err, p.Next, p.Now = perr, deref(page.NextMarker), deref(page.Date)
		if listed = page.Segment != nil; listed {
			items = page.Segment.BlobItems
			for _, dir := range page.Segment.BlobPrefixes {
				p.Dirs = append(p.Dirs, deref(dir.Name))
			}
		}
	}
	if err != nil {
		return p, s.explain(err)
	}
	if !listed {
		return p, errors.New("the server sent no listing")
	}
	p.More = p.Next != ""
	for _, item := range items {
		name, about := deref(item.Name), item.Properties
		if about == nil || about.ContentLength == nil || about.LastModified == nil || about.ETag == nil {
			return p, fmt.Errorf("the server listed %q without its size, time or ETag", name)
		}
		p.Objects = append(p.Objects, objects.Object{
			Key: name, Size: *about.ContentLength, Modified: *about.LastModified, Written: *about.LastModified, ID: string(*about.ETag),
			Dir: isFolder(item.Metadata) || deref(about.ResourceType) == "directory",
		})
	}
	if dir := strings.TrimSuffix(prefix, "/"); dir != "" && !p.More && len(p.Objects)+len(p.Dirs) == 0 {
		about, err := s.client.NewBlobClient(dir).GetProperties(ctx, nil)
		switch err = s.explain(err); {
		case err == nil && isFolder(about.Metadata):
			p.Objects = []objects.Object{{Key: prefix, Dir: true}}
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return p, err
		}
	}
	return p, nil
}

// isFolder reports whether metadata are those of a directory. Their keys are in lower case or not.
func isFolder(metadata map[string]*string) bool {
	for key, value := range metadata {
		if strings.EqualFold(key, folderMark) {
			return deref(value) == "true"
		}
	}
	return false
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Get requests a blob.
func (s *store) Get(ctx context.Context, key, id string, offset, n int64) (*objects.Body, error) {
	o := &blob.DownloadStreamOptions{}
	if id != "" {
		etag := azcore.ETag(`"` + strings.Trim(id, `"`) + `"`) // listings have ETags without quotes
		o.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
	}
	if n >= 0 {
		o.Range = blob.HTTPRange{Offset: offset, Count: n}
	}
	out, err := s.client.NewBlobClient(key).DownloadStream(ctx, o)
	if err != nil {
		return nil, s.missing(ctx, key, id, s.explain(err))
	}
	b := &objects.Body{ReadCloser: out.Body, ID: string(deref(out.ETag)), Modified: deref(out.LastModified)}
	b.Offset, b.Size, err = objects.Extent(out.ContentRange == nil, deref(out.ContentRange), out.ContentLength)
	if isFolder(out.Metadata) && err == nil {
		err = errFolder
	}
	if err != nil {
		return nil, errors.Join(err, out.Body.Close())
	}
	return b, nil
}

// missing returns the error of a request for a blob, after another look at it where the error leaves open whether there is
// a file: a blob that was removed does not have the expected ETag, and a directory is empty.
func (s *store) missing(ctx context.Context, key, id string, err error) error {
	if !errors.Is(err, source.ErrChanged) && (id != "" || !errors.Is(err, objects.ErrRange)) {
		return err
	}
	about, now := s.client.NewBlobClient(key).GetProperties(ctx, nil)
	switch now = s.explain(now); {
	case errors.Is(now, fs.ErrNotExist):
		return now
	case now == nil && isFolder(about.Metadata):
		return errFolder
	}
	return err
}

// errFolder is the error for a blob that stands for a directory.
var errFolder = fmt.Errorf("it is a directory: %w", fs.ErrNotExist)

// Put writes a blob.
func (s *store) Put(ctx context.Context, key string, data []byte) error {
	_, err := s.client.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), nil)
	return s.explain(err)
}
