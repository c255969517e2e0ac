//go:build integration

package manual

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

var picture = regexp.MustCompile(`(?:src|srcset)="([^"]+)"|!\[[^\]]+\]\(([^)]+)\)`)

// The pictures of the README are there and small.
func TestPictures(t *testing.T) {
	const most = 200 << 10
	found := picture.FindAllStringSubmatch(readme(t), -1)
	for _, m := range found {
		name := m[1] + m[2]
		info, err := os.Stat(filepath.Join(process.Root(), name))
		if err != nil {
			t.Errorf("README.md shows %s: %v", name, err)
		} else if info.Size() > most {
			t.Errorf("%s has %d bytes, more than %d", name, info.Size(), most)
		}
	}
	if len(found) < 4 {
		t.Errorf("%d pictures", len(found))
	}
}

// The chart shows figures.json, and every figure in that is in the benchmarks.
func TestChart(t *testing.T) {
	dir := filepath.Join(process.Root(), "docs", "pictures")
	raw, err := os.ReadFile(filepath.Join(dir, "figures.json"))
	expect.NoError(t, err)
	chart, err := os.ReadFile(filepath.Join(dir, "chart.svg"))
	expect.NoError(t, err)
	var figures struct {
		Panels []struct {
			Bars []struct {
				Name  string
				Value json.Number
			}
		}
	}
	expect.NoError(t, json.Unmarshal(raw, &figures))
	measured, drawn := page(t, "../bench/README.md"), strings.ReplaceAll(string(chart), ",", "")
	for _, panel := range figures.Panels {
		for _, bar := range panel.Bars {
			if !strings.Contains(measured, " "+bar.Value.String()+" ") {
				t.Errorf("%s of %s is not in bench/README.md", bar.Value, bar.Name)
			}
			if !strings.Contains(drawn, ">"+bar.Value.String()+"<") {
				t.Errorf("chart.svg does not show %s of %s: run docs/pictures/make.sh chart", bar.Value, bar.Name)
			}
		}
	}
	if len(figures.Panels) == 0 {
		t.Error("there are no figures")
	}
}
