//go:build integration

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sequins/test/checker"
	"sequins/test/expect"
)

// pieceTime is the time in which a job that writes in place writes half a file: nodes list several
// times meanwhile, and never find the same twice.
const pieceTime = 300 * time.Millisecond

// TestInPlace writes versions file by file in the source while the nodes list it every second. No
// client gets a wrong 404, and all nodes finally have every version completely, whichever parts of
// it they listed before.
func TestInPlace(t *testing.T) {
	t.Parallel()
	z := sharedZookeeper(t)
	for _, tt := range []struct {
		name   string
		marker bool
	}{{"without a marker", false}, {"with a marker at the end", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, z, settings{data: dataset{keys: 2000, partitions: 8}, members: 4, replication: 2})
			for _, m := range c.members {
				m.config.Extra = "refresh_period = \"1s\"\nsettle = \"3s\"\nrequire_success_file = \"auto\"\n" // the defaults of the last two
			}
			first := versionName(1)
			c.publish(t, first)
			if !tt.marker {
				expect.NoError(t, os.Remove(filepath.Join(c.source, db, first, "_SUCCESS")))
			}
			c.startAll(t)
			c.waitServed(t, first)
			l := z.look(t)
			c.waitWhole(t, l, first)
			r := record(t, c, first)
			defer r.judge(t, "history-in-place")
			for n := 2; n <= 3; n++ {
				version := versionName(n)
				r.Note(checker.Event{Kind: checker.Publish, Version: version})
				c.data.publishInPlace(t, c.source, version, tt.marker)
				c.waitServed(t, version)
				c.waitWhole(t, l, version)
				c.checkWhole(t, version)
			}
		})
	}
}

// publishInPlace writes a version under its final name, each file in two halves, and at the end
// _SUCCESS if required.
func (d dataset) publishInPlace(t testing.TB, source, version string, marker bool) {
	t.Helper()
	expect.NoError(t, d.newJob(t, source, version, marker).run())
}

// A job writes a version in place. If its directory is moved, it continues there.
type job struct {
	from       string // directory with the files
	to         *os.Root
	partitions int
	marker     bool
}

func (d dataset) newJob(t testing.TB, source, version string, marker bool) job {
	t.Helper()
	away := t.TempDir()
	d.publish(t, away, version)
	dir := filepath.Join(source, db, version)
	expect.NoError(t, os.Mkdir(dir, 0o755))
	to, err := os.OpenRoot(dir)
	expect.NoError(t, err)
	return job{from: filepath.Join(away, db, version), to: to, partitions: d.partitions, marker: marker}
}

// run writes the files. It must be called once.
func (j job) run() error {
	var errs []error
	for p := range j.partitions {
		name := fmt.Sprintf("part-r-%05d", p)
		data, err := os.ReadFile(filepath.Join(j.from, name))
		errs = append(errs, err, j.writeSlowly(name, data))
	}
	if j.marker {
		errs = append(errs, j.to.WriteFile("_SUCCESS", nil, 0o644))
	}
	return errors.Join(append(errs, j.to.Close())...)
}

// writeSlowly writes a file in two halves.
func (j job) writeSlowly(name string, data []byte) (err error) {
	f, err := j.to.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, half := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := f.Write(half); err != nil {
			return err
		}
		time.Sleep(pieceTime) // the pace of the job is what is tested
	}
	return nil
}

// checkWhole asks every member for every key.
func (c *cluster) checkWhole(t testing.TB, version string) {
	t.Helper()
	c.checkEach(t, c.members, version)
}

// checkEach asks some members for every key.
func (c *cluster) checkEach(t testing.TB, members []*member, version string) {
	t.Helper()
	for _, m := range members {
		client := m.node.Client()
		if err := c.expectAll(client, m, version, nil, 0, 1); err != nil {
			t.Error(err)
		}
		client.Close()
	}
}
