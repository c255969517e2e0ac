package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sequins/source"
)

// linkName is the object that makes a version a link to another one of its
// database: its text, with white space around it or not, is that one's name,
// which need not be a valid one itself. Links are not followed further.
const linkName = "_SYMLINK"

// maxLinks is how many links are remembered.
const maxLinks = 10_000

// follow lists what a link leads to.
func (s *Source) follow(ctx context.Context, dir string) (target string, l *listing, err error) {
	if target, err = s.readLink(ctx, dir); err != nil {
		return "", nil, err
	}
	if l, err = s.list(ctx, target, false); err != nil {
		return "", nil, err
	}
	if _, linked := l.objects[linkName]; linked && target != dir {
		return "", nil, s.fail(ctx, "list", dir+"/"+linkName,
			fmt.Errorf("it names %s, which is such a link itself", path.Base(target)))
	}
	return target, l, nil
}

// readLink returns the directory to read in place of dir: what the link in it
// names, or dir itself, if there is none.
func (s *Source) readLink(ctx context.Context, dir string) (string, error) {
	key := dir + "/" + linkName
	f, err := s.openKey(ctx, key, source.File{}, source.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*source.MaxName))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(text))
	if !source.ValidFile(name) || strings.Contains(name, "/") || len(name) > source.MaxName {
		return "", s.fail(ctx, "read", key, fmt.Errorf("%.100q is not the name of a version", name))
	}
	return path.Join(path.Dir(dir), name), nil
}

// remember keeps what Files has found about a version, so that what is opened
// next is what was listed, and no more requests are needed for it.
func (s *Source) remember(dir, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) >= maxLinks {
		clear(s.links)
	}
	s.links[dir] = target
}

// resolve returns the directory to read in place of dir.
func (s *Source) resolve(ctx context.Context, dir string) (string, error) {
	s.mu.Lock()
	target, known := s.links[dir]
	s.mu.Unlock()
	if known {
		return target, nil
	}
	return s.readLink(ctx, dir)
}
