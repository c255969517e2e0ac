//go:build integration

package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sequins/test/chart"
	"sequins/test/expect"
)

// content are the files of a ConfigMap or a Secret, by key.
type content map[string]string

// A volume is a directory that containers of a pod mount.
type volume struct {
	chart.Volume
	dir string
}

// files are those of a volume that is made of objects, by path; nil for other volumes.
func (p *pod) files(v chart.Volume) (map[string]string, error) {
	found := map[string]string{}
	add := func(kind string, objects map[string]content, f *chart.Files) error {
		object, there := objects[f.Name]
		if !there {
			return fmt.Errorf("%s needs %s %s, which there is not", p.name, kind, f.Name)
		}
		for key, text := range object {
			if f.Items == nil {
				found[key] = text
			}
		}
		for _, i := range f.Items {
			text, there := object[i.Key]
			if !there {
				return fmt.Errorf("%s needs %s of %s %s, which has none", p.name, i.Key, kind, f.Name)
			}
			found[i.Path] = text
		}
		return nil
	}
	switch {
	case v.ConfigMap != nil:
		return found, add("ConfigMap", p.c.configs, v.ConfigMap)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			var err error
			switch {
			case s.Secret != nil:
				err = add("Secret", p.c.secrets, s.Secret)
			case s.ConfigMap != nil:
				err = add("ConfigMap", p.c.configs, s.ConfigMap)
			default:
				err = errors.New("an unknown source of a projected volume")
			}
			if err != nil {
				return nil, err
			}
		}
		return found, nil
	}
	return nil, nil
}

// mount makes the directories of the pod's volumes.
func (p *pod) mount(t testing.TB) {
	t.Helper()
	for _, v := range p.spec.Volumes {
		vol := &volume{v, filepath.Join(p.dir, "volumes", v.Name)}
		switch {
		case v.ConfigMap != nil, v.Projected != nil:
			expect.NoError(t, os.MkdirAll(vol.dir, 0o755))
			p.publishFiles(t, vol)
		case v.EmptyDir != nil:
			p.makeWritable(t, vol.dir)
		case v.HostPath != nil:
			vol.dir = v.HostPath.Path
		default:
			t.Fatalf("%s: an unknown volume %+v", p.name, v)
		}
		p.volumes[v.Name] = vol
	}
	for _, claim := range p.c.set.VolumeClaimTemplates {
		vol := &volume{chart.Volume{Name: claim.Metadata.Name}, p.c.claim(claim.Metadata.Name, p.name)}
		p.makeWritable(t, vol.dir)
		p.volumes[vol.Name] = vol
	}
}

// makeWritable makes a directory that the group of the pod's volumes may write to.
func (p *pod) makeWritable(t testing.TB, dir string) {
	t.Helper()
	err := os.MkdirAll(dir, 0o755)
	if err = errors.Join(err, os.Chown(dir, 0, p.spec.SecurityContext.FSGroup)); err == nil {
		err = os.Chmod(dir, 0o775|fs.ModeSetgid)
	}
	expect.NoError(t, err)
}

// publishFiles writes the files of a ConfigMap or of Secrets as the kubelet does: into a directory of their own, which replaces
// the one before by a link, so that all files change at once.
func (p *pod) publishFiles(t testing.TB, v *volume) {
	t.Helper()
	files, err := p.files(v.Volume)
	expect.NoError(t, err)
	mode := os.FileMode(0o644)
	if v.Projected != nil {
		mode = os.FileMode(v.Projected.DefaultMode)
	}
	data := fmt.Sprintf("..%d", time.Now().UnixNano())
	for path, text := range files {
		file := filepath.Join(v.dir, data, path)
		expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		err := os.WriteFile(file, []byte(text), 0o600)
		if err = errors.Join(err, os.Chown(file, 0, p.spec.SecurityContext.FSGroup)); err == nil {
			err = os.Chmod(file, mode)
		}
		expect.NoError(t, err)
		first, _, _ := strings.Cut(path, "/")
		if err := os.Symlink(filepath.Join("..data", first), filepath.Join(v.dir, first)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	old, _ := os.Readlink(filepath.Join(v.dir, "..data")) // "" the first time
	next := filepath.Join(v.dir, "..data_tmp")
	expect.NoError(t, errors.Join(os.Symlink(data, next), os.Rename(next, filepath.Join(v.dir, "..data"))))
	if old != "" {
		expect.NoError(t, os.RemoveAll(filepath.Join(v.dir, old)))
	}
}
