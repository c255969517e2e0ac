package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	program = "/usr/bin/sequins"
	store   = "/var/sequins" // what local_store is by default
	docs    = "/usr/share/doc/sequins"
	// user is the number that images without root have in common ("nonroot").
	user = 65532
)

// layer is the only layer of an image: the program, the authorities of the web, a user, and the two directories that the
// user may write to. There is no shell and no library.
func (r release) layer(binary string) (v1.Layer, error) {
	var content bytes.Buffer
	w := layerWriter{tar.NewWriter(&content), r.created, map[string]bool{}}
	certificates, err := authorities()
	if err != nil {
		return nil, err
	}
	if err := w.copy(binary, program, 0o755); err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, text string }{
		{"/etc/group", fmt.Sprintf("root:x:0:\nsequins:x:%d:\n", user)},
		{"/etc/passwd", fmt.Sprintf("root:x:0:0::/:/sbin/nologin\nsequins:x:%[1]d:%[1]d::%[2]s:/sbin/nologin\n", user, store)},
		{"/etc/ssl/certs/ca-certificates.crt", certificates},
	} {
		if err := w.file(f.name, int64(len(f.text)), 0o644, bytes.NewBufferString(f.text)); err != nil {
			return nil, err
		}
	}
	for _, doc := range r.docs {
		if err := w.copy(doc, path.Join(docs, filepath.Base(doc)), 0o644); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{store, "/tmp"} {
		if err := w.dir(dir, user, 0o755); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// authorities are the certificates of authorities that Mozilla trusts, in PEM. Those that it trusts for some certificates only
// are left out: a file cannot say so.
func authorities() (string, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// layerWriter writes files and the directories that they need, all of one time.
type layerWriter struct {
	*tar.Writer
	created time.Time
	dirs    map[string]bool
}

func (w layerWriter) copy(from, name string, mode int64) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.file(name, info.Size(), mode, f)
}

func (w layerWriter) file(name string, size, mode int64, r io.Reader) error {
	if err := w.dir(path.Dir(name), 0, 0o755); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Size: size, Mode: mode, ModTime: w.created, Format: tar.FormatPAX}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(w, r)
	return err
}

func (w layerWriter) dir(name string, owner int, mode int64) error {
	if name == "/" || w.dirs[name] {
		return nil
	}
	w.dirs[name] = true
	if err := w.dir(path.Dir(name), 0, 0o755); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode, Uid: owner, Gid: owner,
		ModTime: w.created, Format: tar.FormatPAX})
}

// archive writes the files below a directory to a tar archive, in the order of their names.
func archive(out, dir string, created time.Time) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	w := layerWriter{tar.NewWriter(f), created, map[string]bool{}}
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		return w.copy(file, "/"+filepath.ToSlash(name), 0o644)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
