//go:build integration

package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/harness"
	"sequins/test/process"
	"sequins/test/sequencefiles"
)

// patience is how long an alert may take to change. If a scrape is not answered within a second on a busy
// machine, the duration of a pending alert starts again.
const patience = 4 * time.Minute

// A scene is where a fault is caused: a source, nodes that read it, and the Prometheus that scrapes them.
type scene struct {
	*testing.T
	name    string // of the test, and of the database
	p       *prometheus
	java    *harness.Harness
	dir     string
	targets []string
}

func newScene(t *testing.T, name string, p *prometheus, java *harness.Harness) *scene {
	s := &scene{T: t, name: name, p: p, java: java, dir: t.TempDir()}
	expect.NoError(t, os.Mkdir(s.source(), 0o755))
	return s
}

func (s *scene) source() string { return filepath.Join(s.dir, "source") }

// config returns the configuration of a node of the scene. The node lists its source only at SIGHUP, unless extra
// overrides that.
func (s *scene) config(extra string) process.Config {
	return process.Config{
		Source: s.source(), Store: filepath.Join(s.TempDir(), "store"), Extra: extra,
		Addr: process.FreeAddr(s), Debug: process.FreeAddr(s),
	}
}

// polling makes a node list its source periodically.
const polling = `refresh_period = "200ms"`

// watch has Prometheus scrape these nodes, and no others of the scene.
func (s *scene) watch(nodes ...*process.Node) {
	s.Helper()
	s.targets = nil
	for _, n := range nodes {
		s.targets = append(s.targets, n.Debug)
	}
	text, err := json.Marshal([]map[string]any{{"targets": s.targets}})
	if err != nil {
		s.Fatal(err)
	}
	path := filepath.Join(s.p.dir, "targets-"+s.name+".json")
	if err := errors.Join(os.WriteFile(path+".tmp", text, 0o644), os.Rename(path+".tmp", path)); err != nil {
		s.Fatal(err)
	}
}

// at and of are the labels of an alert that is about a node, and about its database.
func at(n *process.Node) map[string]string { return map[string]string{"instance": n.Debug} }

func (s *scene) of(n *process.Node) map[string]string {
	l := map[string]string{"db": s.name}
	if n != nil {
		maps.Copy(l, at(n))
	}
	return l
}

// quiet waits until an alert is neither firing nor pending, in an evaluation of data scraped since the call.
func (s *scene) quiet(name string, labels map[string]string) {
	s.Helper()
	start := time.Now()
	s.wait(name+" is quiet", func() bool {
		scraped := s.p.scraped(s.T, s.targets)
		return scraped.After(start) && s.p.evaluated(s.T).After(scraped) && len(s.p.alerts(s.T, name, labels)) == 0
	})
}

// fires waits until an alert fires.
func (s *scene) fires(name string, labels map[string]string) {
	s.Helper()
	start := time.Now()
	s.wait(name+" fires", func() bool {
		for _, a := range s.p.alerts(s.T, name, labels) {
			if a.State == "firing" {
				s.Logf("%s after %v: %s", name, time.Since(start).Round(time.Second/10), a.Annotations["summary"])
				return true
			}
		}
		return false
	})
}

func (s *scene) wait(what string, condition func() bool) {
	s.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-end:
			s.Fatalf("%v have passed without: %s", patience, what)
		}
	}
}

// leads holds that the manual's section on an alert tells people to look at something (its words there), and that who
// does finds the cause.
func (s *scene) leads(name, words, found string, causes ...string) {
	s.Helper()
	if !strings.Contains(section(s.T, name), words) {
		s.Errorf("the section on %s does not say %q", name, words)
	}
	for _, cause := range causes {
		if !strings.Contains(found, cause) {
			s.Errorf("%s: who looks at %q does not find %q, but\n%s", name, words, cause, found)
		}
	}
}

// sections are those of the manual on each alert.
func section(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "docs", "RUNBOOK.md"))
	expect.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "\n### "+name+"\n")
	section, _, _ := strings.Cut(after, "\n### ")
	return strings.Join(strings.Fields(section), " ")
}

// run runs a command of sequins, which may fail, and returns its output.
func (s *scene) run(args ...string) string {
	s.Helper()
	out, err := exec.Command(process.Binary(s), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	return string(out)
}

// ask asks a node for all keys of the database, over and over, until the test ends. The answers may be any.
func (s *scene) ask(n *process.Node) {
	var running sync.WaitGroup
	stop := make(chan struct{})
	s.Cleanup(func() { close(stop); running.Wait() })
	running.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		c := n.Client()
		defer c.Close()
		for i := 0; ; i = (i + 1) % records {
			select {
			case <-tick.C:
				_, _ = c.Get(s.target(i)) // that requests fail is the point
			case <-stop:
				return
			}
		}
	})
}

// codes asks for every key once and returns the answers' codes, as text.
func (s *scene) codes(n *process.Node) string {
	s.Helper()
	c := n.Client()
	defer c.Close()
	var b strings.Builder
	for i := range records {
		if r, err := c.Get(s.target(i)); err != nil {
			fmt.Fprintln(&b, err)
		} else {
			fmt.Fprintln(&b, r.Code)
		}
	}
	return b.String()
}

// How much a version has.
const (
	records = 50
	files   = 3
)

func (s *scene) target(i int) string { return fmt.Sprintf("/%s/key-%06d", s.name, i) }

// write writes a version of three files, as a careful job does.
func (s *scene) write(version string) {
	s.Helper()
	s.writeSome(version, records)
}

// writeSome is write for n records.
func (s *scene) writeSome(version string, n int) {
	s.Helper()
	tmp := filepath.Join(s.source(), s.name, "_"+version)
	for i := range files {
		s.writeFile(filepath.Join(tmp, fmt.Sprintf("part-r-%05d", i)), func(i int) string { return fmt.Sprintf("%s/%d", version, i) }, i, files, n)
	}
	s.publish(version)
}

// publish renames a version to its final name.
func (s *scene) publish(version string) {
	s.Helper()
	dir := filepath.Join(s.source(), s.name)
	if err := os.Rename(filepath.Join(dir, "_"+version), filepath.Join(dir, version)); err != nil {
		s.Fatal(err)
	}
}

// writeFile writes every step-th of n records, from the first on.
func (s *scene) writeFile(path string, value func(i int) string, first, step, n int) {
	s.Helper()
	sequencefiles.WriteFile(s, path, sequencefiles.WriterOptions{}, func(add func(key, value string)) {
		for i := first; i < n; i += step {
			add(fmt.Sprintf("key-%06d", i), value(i))
		}
	})
}
