package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"sequins/internal/names"
	"sequins/source"
)

// linkName is the object that makes a version a link to another version of its
// database. Its text, without surrounding white space, is the name of that
// version, which need not be valid itself. A link to a link is an error.
const linkName = "_SYMLINK"

const maxLinks = 10_000

func (s *Source) follow(ctx context.Context, dir string) (target string, l *listing, err error) {
	if target, err = s.readLink(ctx, dir); err != nil {
		return "", nil, err
	}
	if l, err = s.list(ctx, target, false); err != nil {
		return "", nil, err
	}
	if _, linked := l.objects[linkName]; linked && target != dir {
		return "", nil, s.fail(ctx, "list", dir+"/"+linkName,
			fmt.Errorf("its target %s is a link itself", path.Base(target)))
	}
	return target, l, nil
}

// readLink returns the directory to read in place of dir: the target of its link,
// or dir itself.
func (s *Source) readLink(ctx context.Context, dir string) (string, error) {
	key := dir + "/" + linkName
	f, err := s.openKey(ctx, key, source.File{}, source.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*names.Max))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	name := strings.TrimSpace(string(text))
	if !source.ValidFile(name) || strings.Contains(name, "/") || len(name) > names.Max {
		return "", s.fail(ctx, "read", key, fmt.Errorf("%.100q is not a valid name of a version", name))
	}
	return path.Join(path.Dir(dir), name), nil
}
