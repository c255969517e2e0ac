//go:build integration

package web

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sequins/test/expect"
)

const compressing = "[http]\ncompression = [\"zstd\", \"gzip\"]\n"

// randomField makes a list of names with weights, each name at most once, with the space that is allowed in it.
func randomField(rng *rand.Rand, names []string) string {
	space := func() string { return strings.Repeat(" ", rng.IntN(3)/2) + strings.Repeat("\t", rng.IntN(8)/7) }
	var items []string
	for _, i := range rng.Perm(len(names))[:rng.IntN(len(names)+1)] {
		item := names[i]
		if rng.IntN(8) == 0 {
			item = strings.ToUpper(item)
		}
		switch rng.IntN(4) {
		case 0:
			item += space() + ";" + space() + "q=" + []string{"0", "0.", "0.0", "0.000", "1", "1.", "1.000"}[rng.IntN(7)]
		case 1:
			item += space() + ";" + space() + fmt.Sprintf("q=0.%d", rng.IntN(1000))
		case 2:
			item += space() + ";" + space() + fmt.Sprintf("Q=0.%d", rng.IntN(4)) // equal weights are frequent
		}
		items = append(items, item)
	}
	return strings.Join(items, space()+","+space())
}

// Accept-Encoding of every form means to a node what it means to WebOb.
func TestAcceptEncoding(t *testing.T) {
	t.Parallel()
	n := start(t, compressing)
	c := n.Client()
	defer c.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	var fields []any
	for range 1000 {
		fields = append(fields, randomField(rng, []string{"gzip", "zstd", "identity", "*", "br", "deflate"}))
	}
	seen := map[string]int{}
	for i, want := range judge(t, fields, "coding") {
		r, err := c.Do("GET", "/words/large", fmt.Sprintf("Accept-Encoding: %s\r\n", fields[i]))
		expect.NoError(t, err)
		got := r.Header.Get("Content-Encoding")
		if want == "?" { // the node has nothing that the client accepts
			want = ""
		}
		if r.Code != 200 || got != want {
			t.Errorf("%q: %d, coding %q, want %q", fields[i], r.Code, got, want)
		}
		seen[got]++
	}
	if len(seen) != 3 || seen["gzip"] < 100 || seen["zstd"] < 100 || seen[""] < 100 {
		t.Errorf("the codings of the answers: %v", seen)
	}
}

// Of the types that a node has, it sends one of the greatest weight, for values, pages and errors.
func TestAccept(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	c := n.Client()
	defer c.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	targets := []struct {
		target string
		offers []string
	}{
		{"/", []string{"application/json", "text/html"}},
		{"/words?key=a", []string{"application/json", "application/octet-stream", "application/x-ndjson"}},
		{"/words?prefix=", []string{"application/x-ndjson", "application/octet-stream"}},
		{"/words/absent", []string{"text/plain", "application/problem+json", "application/json"}},
		{"/words?key", []string{"text/plain", "application/problem+json", "application/json"}},
	}
	const each = 300 // questions for a target
	var questions []any
	for _, of := range targets {
		names := append(slices.Clone(of.offers), "*/*", "application/*", "text/*", "image/png")
		for range each {
			questions = append(questions, append([]string{randomField(rng, names)}, of.offers...))
		}
	}
	lines := judge(t, questions, "weights")
	if len(lines) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(lines), len(questions))
	}
	for nth, of := range targets {
		target, offers := of.target, of.offers
		seen := map[string]int{}
		for i := nth * each; i < (nth+1)*each; i++ {
			line := lines[i]
			var weights []float64
			expect.NoError(t, json.Unmarshal([]byte(line), &weights))
			field := questions[i].([]string)[0]
			header := "Accept: " + field + "\r\n"
			if field == "" {
				header, weights = "", []float64{1} // not a preference
			}
			r, err := c.Do("GET", target, header)
			expect.NoError(t, err)
			media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
			at := slices.Index(offers, media)
			if at < 0 || at >= len(weights) || weights[at] < slices.Max(weights) {
				t.Errorf("%s, %q: %s, of %v with weights %v", target, field, media, offers, weights)
			}
			seen[media]++
		}
		if len(seen) != len(offers) {
			t.Errorf("%s: only %v were sent", target, seen)
		}
	}
}

// Python's clients decode what they get.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	n := start(t, compressing)
	if out := judge(t, nil, "clients", "http://"+n.Addr, fmt.Sprint(largeSize)); out[0] != "ok" {
		t.Errorf("%q", out)
	}
}
