package azure

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sequins/source"
	"sequins/source/objects"
)

const (
	// firstPause and maxPause are the maximum pauses after the first failure and after later ones.
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second

	// maxSummed is the largest range of which Azure computes an MD5, in bytes.
	maxSummed = 4 << 20
)

// folderMark is the key of the metadata of a directory, in lower case.
const folderMark = "hdi_isfolder"

// store is a container.
type store struct {
	place
	client *container.Client
	conns  *objects.Connections
	asks   string   // the credentials, for messages
	hidden []string // secrets that no error may have
}

var _ objects.Directories = (*store)(nil)

// clientOptions returns the options of all clients of the SDK.
func (s *store) clientOptions(retries int) azcore.ClientOptions {
	if retries == 0 {
		retries = -1 // 0 means the default
	}
	return azcore.ClientOptions{
		Transport: s.conns.Client(),
		Retry:     policy.RetryOptions{MaxRetries: int32(min(retries, 1<<30)), RetryDelay: firstPause, MaxRetryDelay: maxPause},
		Telemetry: policy.TelemetryOptions{ApplicationID: "sequins"},
	}
}

// Close closes the connections.
func (s *store) Close() error {
	s.conns.Close()
	return nil
}

// List returns a page of a listing. The metadata tell directories from files.
func (s *store) List(ctx context.Context, prefix string, deep bool, token string) (p objects.Page, err error) {
	include := container.ListBlobsInclude{Metadata: true}
	xml := container.StorageResponseFormatXML // the other format is not compiled in: see internal/noarrow
	var marker *string
	if token != "" {
		marker = &token
	}
	if deep {
		page, err := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Marker: marker, Include: include, ResponseFormat: xml}).NextPage(ctx)
		if err != nil {
			return p, s.explain(err)
		}
		p.Next, p.Now = deref(page.NextMarker), deref(page.Date)
		if page.Segment == nil {
			return p, errors.New("the server sent no listing")
		}
		err = addItems(&p, page.Segment.BlobItems)
		return p, err
	}
	page, err := s.client.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: marker, Include: include, ResponseFormat: xml}).NextPage(ctx)
	if err != nil {
		return p, s.explain(err)
	}
	p.Next, p.Now = deref(page.NextMarker), deref(page.Date)
	if page.Segment == nil {
		return p, errors.New("the server sent no listing")
	}
	for _, dir := range page.Segment.BlobPrefixes {
		p.Dirs = append(p.Dirs, deref(dir.Name))
	}
	return p, addItems(&p, page.Segment.BlobItems)
}

// addItems adds the blobs of a page.
func addItems(p *objects.Page, items []*container.BlobItem) error {
	p.More = p.Next != ""
	for _, item := range items {
		name, about := deref(item.Name), item.Properties
		if about == nil || about.ContentLength == nil || about.LastModified == nil || about.ETag == nil {
			return fmt.Errorf("the server listed %q without its size, time or ETag", name)
		}
		p.Objects = append(p.Objects, objects.Object{
			Key: name, Size: *about.ContentLength, Modified: *about.LastModified, Written: *about.LastModified, ID: string(*about.ETag),
			Dir: isFolder(item.Metadata) || deref(about.ResourceType) == "directory",
		})
	}
	return nil
}

// isFolder reports whether metadata are those of a directory. Their keys are in lower case or not.
func isFolder(metadata map[string]*string) bool {
	for key := range maps.Keys(metadata) {
		if strings.EqualFold(key, folderMark) {
			return deref(metadata[key]) == "true"
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

// IsDir reports whether a blob stands for a directory.
func (s *store) IsDir(ctx context.Context, key string) (bool, error) {
	about, err := s.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err = s.explain(err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return isFolder(about.Metadata), err
}

// conditions returns the condition that a blob has an id.
func conditions(id string) *blob.AccessConditions {
	if id == "" {
		return nil
	}
	etag := azcore.ETag(`"` + strings.Trim(id, `"`) + `"`) // listings have ETags without quotes
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

// Get requests a blob.
func (s *store) Get(ctx context.Context, key, id string, offset, n int64) (*objects.Body, error) {
	o := &blob.DownloadStreamOptions{AccessConditions: conditions(id)}
	if n >= 0 {
		o.Range = blob.HTTPRange{Offset: offset, Count: n}
		if n <= maxSummed {
			o.RangeGetContentMD5 = to.Ptr(true)
		}
	}
	out, err := s.client.NewBlobClient(key).DownloadStream(ctx, o)
	if err != nil {
		return nil, s.missing(ctx, key, id, s.explain(err))
	}
	length := int64(-1)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	b := &objects.Body{ReadCloser: out.Body, ID: string(deref(out.ETag)), Modified: deref(out.LastModified)}
	if n >= 0 && out.ContentRange != nil && len(out.ContentMD5) == md5.Size {
		b.Check = func(all []byte) bool {
			sum := md5.Sum(all)
			return bytes.Equal(sum[:], out.ContentMD5)
		}
	}
	b.Offset, b.Size, err = objects.Extent(out.ContentRange == nil, deref(out.ContentRange), length)
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

// Put writes a blob. The server compares what it received with a CRC-64.
func (s *store) Put(ctx context.Context, key string, data []byte, id string) error {
	o := &blockblob.UploadOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64(), AccessConditions: conditions(id)}
	if id == "" {
		any := azcore.ETagAny
		o.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}}
	}
	_, err := s.client.NewBlockBlobClient(key).Upload(ctx, readSeekCloser(data), o)
	return s.explain(err)
}

// readSeekCloser returns data as the SDK wants them.
func readSeekCloser(data []byte) io.ReadSeekCloser { return nopCloser{bytes.NewReader(data)} }

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }
