// Command image makes the container image of sequins from binaries, without a daemon and without a registry.
//
//	image [flags] OUT ARCH=BINARY...
//
// OUT is a tar archive with an OCI image layout of one image for each architecture, below one index. The bytes depend on the
// arguments and the files alone. Formats: https://github.com/opencontainers/image-spec (v1.1).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// release is what the image is of.
type release struct {
	version  string
	revision string
	created  time.Time
	docs     []string // files that go to /usr/share/doc/sequins
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "unknown", "the version, which is the tag in the archive")
	flag.StringVar(&r.revision, "revision", "", "the commit, for a label")
	epoch := flag.Int64("epoch", 0, "the time of the image and all its files, in seconds since 1970")
	docs := flag.String("docs", "", "files for /usr/share/doc/sequins, separated by commas")
	flag.Parse()
	r.created = time.Unix(*epoch, 0).UTC()
	if *docs != "" {
		r.docs = strings.Split(*docs, ",")
	}
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: image [flags] OUT ARCH=BINARY...")
		flag.PrintDefaults()
		os.Exit(2)
	}
	if err := write(flag.Arg(0), r, flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write makes the archive out of the binaries, each as ARCH=BINARY.
func write(out string, r release, binaries []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		arch, path, found := strings.Cut(b, "=")
		if !found {
			return fmt.Errorf("%q is not ARCH=BINARY", b)
		}
		image, err := r.image(arch, path)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	dir, err := os.MkdirTemp(filepath.Dir(out), "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The names that containerd (also below Docker) and others give the image when they import the archive.
	names := map[string]string{
		"io.containerd.image.name":          "docker.io/library/sequins:" + r.version,
		"org.opencontainers.image.ref.name": r.version,
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	return archive(out, dir, r.created)
}

// image is the image for an architecture.
func (r release) image(arch, binary string) (v1.Image, error) {
	layer, err := r.layer(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer,
		History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "sequins " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.created}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{program},
		Env:          []string{"PATH=/usr/bin"},
		WorkingDir:   store,
		ExposedPorts: map[string]struct{}{"9599/tcp": {}},
		Volumes:      map[string]struct{}{store: {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "sequins",
			"org.opencontainers.image.description": "serves the output of batch jobs as key-value databases over HTTP",
			"org.opencontainers.image.licenses":    "MIT",
			"org.opencontainers.image.version":     r.version,
			"org.opencontainers.image.revision":    r.revision,
			"org.opencontainers.image.created":     r.created.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(image, config)
}
