//go:build integration

package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/process"
)

// hurry is what times are divided by. The longest that is left is then half a minute.
const hurry = 120

const configuration = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: sequins
    file_sd_configs:
      - {files: [targets-*.json], refresh_interval: 1s}
`

// A prometheus is a running one. It scrapes what has a file of targets in its directory.
type prometheus struct{ dir, addr string }

// startPrometheus runs one until the test ends.
func startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	process.OutputOf(t, "make", "-C", process.Root(), "-s", "--no-print-directory", ".cache/prometheus")
	p := &prometheus{dir: t.TempDir(), addr: process.FreeAddr(t)}
	if err := errors.Join(
		os.WriteFile(filepath.Join(p.dir, "alerts.yml"), []byte(hurried(t, readRules(t))), 0o644),
		os.WriteFile(filepath.Join(p.dir, "prometheus.yml"), []byte(configuration), 0o644)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	expect.NoError(t, err)
	binary, err := filepath.Abs(filepath.Join(process.Root(), ".cache", "prometheus"))
	expect.NoError(t, err)
	cmd := exec.Command(binary, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+p.addr)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	// The thread that starts it is this test's for good: TestAlerts locks it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	expect.NoError(t, errors.Join(cmd.Start(), log.Close()))
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of Prometheus:\n%s", said)
		}
	})
	process.Eventually(t, "Prometheus is ready", func() bool {
		r, err := http.Get("http://" + p.addr + "/-/ready")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
	return p
}

func readRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process.Root(), "packaging", "contrib", "prometheus", "alerts.yml"))
	expect.NoError(t, err)
	return string(text)
}

// timeInRules is what is a time that has to pass: "for: 15m", "[5m]", and the seconds after "time() - x >" that are
// no multiple of a day. Ages in days are those of data: these can be had without waiting.
var timeInRules = regexp.MustCompile(`(for: |\[)(\d+)([smhd])|(time\(\) - \w+ > )(\d+)\n`)

// hurried makes all times shorter.
func hurried(t *testing.T, rules string) string {
	t.Helper()
	units := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	changed := 0
	rules = timeInRules.ReplaceAllStringFunc(rules, func(s string) string {
		changed++
		m := timeInRules.FindStringSubmatch(s)
		if m[4] != "" {
			return m[4] + strconv.FormatFloat(number(t, m[5])/hurry, 'g', -1, 64) + "\n"
		}
		d := time.Duration(number(t, m[2])) * units[m[3]] / hurry
		return fmt.Sprintf("%s%dms", m[1], d.Milliseconds())
	})
	if changed < 20 {
		t.Fatalf("%d times were found in the rules", changed)
	}
	return rules
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	expect.NoError(t, err)
	return n
}

// get asks for something of Prometheus's API.
func (p *prometheus) get(t *testing.T, path string, data any) {
	t.Helper()
	r, err := http.Get("http://" + p.addr + "/api/v1/" + path)
	expect.NoError(t, err)
	defer r.Body.Close()
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("Prometheus says to %s: %q, %v", path, answer.Status, err)
	}
}

// An alert is one that is pending or firing.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// alerts returns those of a name that have all labels.
func (p *prometheus) alerts(t *testing.T, name string, labels map[string]string) (found []alert) {
	t.Helper()
	var data struct{ Alerts []alert }
	p.get(t, "alerts", &data)
next:
	for _, a := range data.Alerts {
		for k, v := range labels {
			if a.Labels[k] != v {
				continue next
			}
		}
		if a.Labels["alertname"] == name {
			found = append(found, a)
		}
	}
	return found
}

// evaluated returns when the rules were last evaluated.
func (p *prometheus) evaluated(t *testing.T) time.Time {
	t.Helper()
	var data struct {
		Groups []struct {
			LastEvaluation time.Time
			Rules          []struct{ Name, Health, LastError string }
		}
	}
	p.get(t, "rules", &data)
	if len(data.Groups) != 1 {
		t.Fatalf("%d groups of rules", len(data.Groups))
	}
	for _, r := range data.Groups[0].Rules {
		if r.Health == "err" {
			t.Fatalf("%s: %s", r.Name, r.LastError)
		}
	}
	return data.Groups[0].LastEvaluation
}

// scraped returns when these were last scraped, the longest ago of them; never, if one could not be.
func (p *prometheus) scraped(t *testing.T, targets []string) time.Time {
	t.Helper()
	var data struct {
		ActiveTargets []struct {
			Labels     map[string]string
			Health     string
			LastScrape time.Time
		}
	}
	p.get(t, "targets?state=active", &data)
	last, found := time.Now(), 0
	for _, a := range data.ActiveTargets {
		for _, target := range targets {
			if a.Labels["instance"] != target {
				continue
			}
			found++
			if a.Health != "up" {
				return time.Time{}
			}
			if a.LastScrape.Before(last) {
				last = a.LastScrape
			}
		}
	}
	if found < len(targets) {
		return time.Time{}
	}
	return last
}
