// Command image makes the container image of sequins from its layers, without a daemon and without a registry.
//
//	image [flags] DIR ARCH=LAYER...
//	image certificates
//
// DIR gets an OCI image layout of one image for each architecture, below one index. LAYER is the tar archive that is the only layer of
// an image. The bytes depend on the arguments and the files alone. Formats: https://github.com/opencontainers/image-spec (v1.1).
//
// The second form prints the certificates of authorities that Mozilla trusts, in PEM.
package main

import (
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

type release struct {
	version  string
	revision string
	created  time.Time
}

const (
	program = "/usr/bin/sequins"
	store   = "/var/sequins" // what local_store is by default
	// user is the number that images without root have in common ("nonroot").
	user = 65532
)

func main() {
	var r release
	flag.StringVar(&r.version, "version", "unknown", "the version, which is the tag in the archive")
	flag.StringVar(&r.revision, "revision", "", "the commit, for a label")
	epoch := flag.Int64("epoch", 0, "the time of the image, in seconds since 1970")
	flag.Parse()
	r.created = time.Unix(*epoch, 0).UTC()
	var err error
	switch {
	case flag.NArg() == 1 && flag.Arg(0) == "certificates":
		err = certificates(os.Stdout)
	case flag.NArg() < 2:
		fmt.Fprintln(os.Stderr, "usage: image [flags] DIR ARCH=LAYER..., or image certificates")
		flag.PrintDefaults()
		os.Exit(2)
	default:
		err = write(flag.Arg(0), r, flag.Args()[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// certificates prints the certificates that Mozilla trusts. Those that it trusts for some certificates only are left out: a file
// cannot say so.
func certificates(w io.Writer) error {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			if err := pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return err
			}
		}
	}
	return nil
}

// write makes the layout out of the layers, each as ARCH=LAYER.
func write(dir string, r release, layers []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, l := range layers {
		arch, path, found := strings.Cut(l, "=")
		if !found {
			return fmt.Errorf("%q is not ARCH=LAYER", l)
		}
		image, err := r.image(arch, path)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The names that containerd (also below Docker) and others give the image when they import the archive.
	names := map[string]string{
		"io.containerd.image.name":          "docker.io/library/sequins:" + r.version,
		"org.opencontainers.image.ref.name": r.version,
	}
	return top.AppendIndex(index, layout.WithAnnotations(names))
}

func (r release) image(arch, path string) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
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
