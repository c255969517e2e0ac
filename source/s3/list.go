package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"sequins/internal/names"
	"sequins/source"
)

// maxKeys and maxPages bound a listing: a server may send empty pages.
const (
	maxKeys  = 2_000_000
	maxPages = 100_000
)

// folderMarker is the suffix of empty objects that older Hadoop file systems write for directories.
const folderMarker = "_$folder$"

// listing is the content of a directory.
type listing struct {
	objects map[string]source.File // by name relative to the directory
	dirs    []string               // in the order of the listing
	empty   bool                   // not even an object for the directory itself
}

// list lists a directory: its immediate content or, if deep, all keys below it.
func (s *Source) list(ctx context.Context, dir string, deep bool) (*listing, error) {
	prefix := dir
	if prefix != "" {
		prefix += "/"
	}
	// Keys may contain control characters, which XML cannot: without encoding, one such key would break the whole
	// listing.
	in := &sdk.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	if !deep {
		in.Delimiter = aws.String("/")
	}
	l := &listing{objects: map[string]source.File{}, empty: true}
	for range maxPages {
		page, err := s.client.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, s.fail(ctx, "list", prefix, err)
		}
		if err := l.add(prefix, page); err != nil {
			return nil, s.fail(ctx, "list", prefix, err)
		}
		if !aws.ToBool(page.IsTruncated) {
			return l, nil
		}
		next := aws.ToString(page.NextContinuationToken)
		if next == "" || next == aws.ToString(in.ContinuationToken) {
			return nil, s.fail(ctx, "list", prefix, errors.New("the server reports a truncated listing without a continuation token"))
		}
		in.ContinuationToken = &next
	}
	return nil, s.fail(ctx, "list", prefix, fmt.Errorf("more than %d pages", maxPages))
}

// add adds one page.
func (l *listing) add(prefix string, page *sdk.ListObjectsV2Output) error {
	for _, p := range page.CommonPrefixes {
		name, err := nameOf(page, prefix, aws.ToString(p.Prefix))
		if err != nil {
			return err
		}
		l.empty = false
		l.dirs = append(l.dirs, strings.TrimSuffix(name, "/"))
	}
	for _, o := range page.Contents {
		name, err := nameOf(page, prefix, aws.ToString(o.Key))
		if err != nil {
			return err
		}
		l.empty = false
		if name != "" && !strings.HasSuffix(name, "/") { // keys with a trailing slash are directories
			l.objects[name] = file(name, o)
		}
	}
	if len(l.objects)+len(l.dirs) > maxKeys {
		return fmt.Errorf("more than %d keys", maxKeys)
	}
	return nil
}

// nameOf returns a key without the prefix. Keys are encoded only if the page says so: not every server supports that.
func nameOf(page *sdk.ListObjectsV2Output, prefix, key string) (string, error) {
	if page.EncodingType == types.EncodingTypeUrl {
		decoded, err := url.QueryUnescape(key)
		if err != nil {
			return "", fmt.Errorf("the server listed %q: %w", key, err)
		}
		key = decoded
	}
	name, under := strings.CutPrefix(key, prefix)
	if !under {
		return "", fmt.Errorf("the server listed %q, which does not have the prefix", key)
	}
	return name, nil
}

func file(name string, o types.Object) source.File {
	return source.File{Name: name, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified), ID: aws.ToString(o.ETag)}
}

// directories returns the names of the directories under dir, in order.
func (s *Source) directories(ctx context.Context, dir string) ([]string, error) {
	l, err := s.list(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	if l.empty && dir != "" {
		return nil, s.fail(ctx, "list", dir+"/", fs.ErrNotExist)
	}
	slices.Sort(l.dirs)
	return slices.Compact(l.dirs), nil
}

func filter(all []string, keep func(string) bool) []string {
	return slices.DeleteFunc(all, func(name string) bool { return !keep(name) })
}

// Databases returns the directories under the prefix with valid names.
func (s *Source) Databases(ctx context.Context) ([]string, error) {
	dirs, err := s.directories(ctx, s.root)
	return filter(dirs, names.ValidDatabase), err
}

// Versions returns the directories of a database with valid names.
func (s *Source) Versions(ctx context.Context, db string) ([]string, error) {
	dir := path.Join(s.root, db)
	if !names.ValidDatabase(db) {
		return nil, s.fail(ctx, "list", dir, fs.ErrNotExist)
	}
	dirs, err := s.directories(ctx, dir)
	return filter(dirs, names.Valid), err
}

// Invalid returns the directories that Databases or Versions omits.
func (s *Source) Invalid(ctx context.Context, db string) ([]string, error) {
	valid := names.Valid
	if db == "" {
		valid = names.ValidDatabase
	}
	dirs, err := s.directories(ctx, path.Join(s.root, db))
	return filter(dirs, func(name string) bool {
		return !valid(name) && !source.Hidden(name)
	}), err
}

// Contents returns the contents of a version, or of the target of its link.
func (s *Source) Contents(ctx context.Context, db, version string) (c source.Contents, err error) {
	dir, err := s.versionDir(ctx, db, version)
	if err != nil {
		return c, err
	}
	l, err := s.list(ctx, dir, false)
	if err != nil {
		return c, err
	}
	target := dir
	if _, linked := l.objects[linkName]; linked {
		if target, l, err = s.follow(ctx, dir); err != nil {
			return c, err
		}
	}
	if l.empty {
		return c, s.fail(ctx, "list", target+"/", fs.ErrNotExist)
	}
	s.remember(dir, target)
	hidden := slices.DeleteFunc(slices.Clone(l.dirs), func(name string) bool { return !source.Hidden(name) })
	if len(hidden) < len(l.dirs) {
		if l, err = s.list(ctx, target, true); err != nil {
			return c, err
		}
	}
	c = l.contents()
	for _, name := range hidden {
		c.Hidden = append(c.Hidden, source.Marker{Name: name, Dir: true})
	}
	c.Sort()
	return c, nil
}

// contents classifies the objects of a listing.
func (l *listing) contents() source.Contents {
	var keys source.Keys
	for name, f := range l.objects {
		if !isFolderMarker(name) {
			keys.Add(f)
		}
	}
	return keys.Contents()
}

// isFolderMarker reports whether an object stands for a directory, or is below one that is named so.
func isFolderMarker(name string) bool {
	return strings.HasSuffix(name, folderMarker) || strings.Contains(name, folderMarker+"/")
}

// versionDir returns the key prefix of a version, without a trailing slash.
func (s *Source) versionDir(ctx context.Context, db, version string) (string, error) {
	dir := path.Join(s.root, db, version)
	if !names.ValidDatabase(db) || !names.Valid(version) {
		return "", s.fail(ctx, "list", dir, fs.ErrNotExist)
	}
	return dir, nil
}
