package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"sequins/source"
)

// maxKeys and maxPages bound a listing: a server may send empty pages.
const (
	maxKeys  = 2_000_000
	maxPages = 100_000
)

// folderMarker is the suffix of empty objects that older Hadoop file systems write for directories.
const folderMarker = "_$folder$"

type listing struct {
	objects map[string]source.File // by name relative to the directory
	dirs    []string               // in order, each once
	empty   bool                   // not even an object for the directory itself
	now     time.Time              // see Page
}

// list lists a directory: its immediate content or, if deep, all keys below it.
func (s *Source) list(ctx context.Context, dir string, deep bool) (*listing, error) {
	prefix := dir
	if prefix != "" {
		prefix += "/"
	}
	l := &listing{objects: map[string]source.File{}, empty: true}
	token := ""
	for range maxPages {
		page, err := s.store.List(ctx, prefix, deep, token)
		if err == nil {
			err = l.add(prefix, deep, &page)
		}
		if err == nil && page.More && (page.Next == "" || page.Next == token) {
			err = errors.New("the server reports a truncated listing without a continuation token")
		}
		if err != nil {
			return nil, s.fail(ctx, "list", prefix, err)
		}
		if !page.More {
			slices.Sort(l.dirs)
			l.dirs = slices.Compact(l.dirs)
			return l, nil
		}
		token = page.Next
	}
	return nil, s.fail(ctx, "list", prefix, fmt.Errorf("more than %d pages", maxPages))
}

func (l *listing) add(prefix string, deep bool, page *Page) error {
	l.now = page.Now
	for _, key := range page.Dirs {
		name, err := nameOf(prefix, key)
		if err != nil {
			return err
		}
		l.empty = false
		l.dirs = append(l.dirs, strings.TrimSuffix(name, "/"))
	}
	for _, o := range page.Objects {
		name, err := nameOf(prefix, o.Key)
		if err != nil {
			return err
		}
		if o.Size < 0 {
			return fmt.Errorf("the server listed %q with %d bytes", o.Key, o.Size)
		}
		l.empty = false
		switch {
		case name == "" || strings.HasSuffix(name, "/") || o.Dir && deep: // keys with a trailing slash are directories
		case o.Dir:
			l.dirs = append(l.dirs, name)
		case o.ID == "" || o.Modified.IsZero():
			return fmt.Errorf("the server listed %q without what identifies it, or its time", o.Key)
		case l.objects[name].Name != "": // then another one may be missing
			return fmt.Errorf("the server listed %q twice", o.Key)
		default:
			l.objects[name] = source.File{Name: name, Size: o.Size, ModTime: o.Modified, Written: o.Written, Mark: o.ID, Sum: o.Sum}
		}
	}
	if len(l.objects)+len(l.dirs) > maxKeys {
		return fmt.Errorf("more than %d keys", maxKeys)
	}
	return nil
}

func nameOf(prefix, key string) (string, error) {
	name, under := strings.CutPrefix(key, prefix)
	if !under {
		return "", fmt.Errorf("the server listed %q, which does not have the prefix", key)
	}
	return name, nil
}

// ReadDir returns the names under a prefix up to the next slash.
func (s *Source) ReadDir(ctx context.Context, dir string) (e source.Entries, err error) {
	prefix := path.Join(s.root, dir)
	if dir != "" && !source.ValidFile(dir) {
		return e, s.fail(ctx, "list", prefix, fs.ErrInvalid)
	}
	l, err := s.list(ctx, prefix, false)
	if err != nil {
		return e, err
	}
	if l.empty && prefix != "" {
		return e, s.fail(ctx, "list", prefix+"/", fs.ErrNotExist)
	}
	e.Dirs = l.dirs
	for name := range l.objects {
		if !isFolderMarker(name) {
			e.Files = append(e.Files, name)
		}
	}
	slices.Sort(e.Files)
	return e, nil
}

// Contents returns the contents of a version, or of the target of its link.
func (s *Source) Contents(ctx context.Context, db, version string) (c source.Contents, err error) {
	dir, err := source.VersionPath(db, version)
	dir = path.Join(s.root, dir)
	if err != nil {
		return c, s.fail(ctx, "list", dir, err)
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
	s.mu.Lock()
	if len(s.links) >= maxLinks {
		clear(s.links)
	}
	s.links[dir] = target // so that Open reads what was listed without further requests
	s.mu.Unlock()
	hidden := slices.DeleteFunc(slices.Clone(l.dirs), func(name string) bool { return !source.Hidden(name) })
	if len(hidden) < len(l.dirs) {
		if l, err = s.list(ctx, target, true); err != nil {
			return c, err
		}
	}
	var keys source.Keys
	for name, f := range l.objects {
		if !isFolderMarker(name) {
			keys.Add(f)
		}
	}
	c = keys.Contents()
	c.Whole, c.Now = true, l.now
	for _, name := range hidden {
		c.AddHidden(source.File{Name: name}, true)
	}
	c.Sort()
	return c, nil
}

// isFolderMarker reports whether an object stands for a directory, or is below one that is named so.
func isFolderMarker(name string) bool {
	return strings.HasSuffix(name, folderMarker) || strings.Contains(name, folderMarker+"/")
}
