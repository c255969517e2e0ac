// Command transfer measures what giving blocks to other nodes costs the reads of a node: GETs of random keys of a sequins process while it is idle
// otherwise, and while two readers copy its blocks one after the other, within the limits of the default configuration. The two take turns.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sequins/shard"
	"sequins/test/sequencefiles"
)

var (
	program = flag.String("sequins", "sequins", "the program")
	records = flag.Int("records", 300_000, "records of 1,000 bytes")
	turn    = flag.Duration("turn", 2*time.Second, "length of a turn")
	turns   = flag.Int("turns", 5, "turns of each kind")
	pause   = flag.Duration("pause", time.Millisecond, "pause of each of four clients between two reads")
	addr    = flag.String("addr", "127.0.0.1:19599", "address of the process")
)

const partitions = 4

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "transfer")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := write(filepath.Join(dir, "source", "db", "1")); err != nil {
		return err
	}
	conf := filepath.Join(dir, "sequins.conf")
	text := fmt.Sprintf("source = %q\nlocal_store = %q\nbind = %q\nsettle = \"0s\"\n", filepath.Join(dir, "source"), filepath.Join(dir, "store"), *addr)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	node := exec.Command(*program, "--config", conf)
	if err := node.Start(); err != nil {
		return err
	}
	defer func() { _ = node.Process.Kill(); _ = node.Wait() }()
	for get("http://"+*addr+"/db/"+key(0), io.Discard) != nil {
		time.Sleep(50 * time.Millisecond)
	}
	measure(0, *turn) // warm
	var ratios []float64
	for range *turns {
		idle, _ := measure(0, *turn)
		giving, rate := measure(2, *turn)
		ratios = append(ratios, float64(giving)/float64(idle))
		fmt.Printf("p99 idle %v, giving %v at %.0f MB/s: %.2f times\n", idle, giving, rate/1e6, float64(giving)/float64(idle))
	}
	slices.Sort(ratios)
	fmt.Printf("median: %.2f times\n", ratios[len(ratios)/2])
	return nil
}

func key(i int) string { return fmt.Sprintf("key-%08d", i) }

// write writes the version.
func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	writers := make([]*sequencefiles.Writer, partitions)
	for p := range writers {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("part-r-%05d", p)))
		if err != nil {
			return err
		}
		defer f.Close()
		if writers[p], err = sequencefiles.NewWriter(f, sequencefiles.WriterOptions{}); err != nil {
			return err
		}
	}
	value := make([]byte, 1000)
	for i := range *records {
		for j := range value {
			value[j] = byte(rand.Uint32())
		}
		k := []byte(key(i))
		if err := writers[shard.String.Partition(k, partitions)].Append(k, value); err != nil {
			return err
		}
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

func get(url string, to io.Writer) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body)
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	_, err = io.Copy(to, resp.Body)
	return err
}

// counter counts bytes.
type counter struct{ *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.Add(int64(len(p))); return len(p), nil }

// measure returns the 99th percentile of reads within a time, while takers copy blocks, and the bytes a second that these get. What is
// copied after the time, to end a block, counts, too.
func measure(takers int, while time.Duration) (p99 time.Duration, rate float64) {
	end := time.Now().Add(while)
	var all sync.WaitGroup
	var taken atomic.Int64
	for i := range takers {
		all.Go(func() {
			for p := i; time.Now().Before(end); p++ {
				_ = get(fmt.Sprintf("http://%s/db?block=%d&proxy=1", *addr, p%partitions), counter{&taken})
			}
		})
	}
	var mu sync.Mutex
	var times []time.Duration
	for range 4 {
		all.Go(func() {
			var own []time.Duration
			var b bytes.Buffer
			for time.Now().Before(end) {
				b.Reset()
				start := time.Now()
				if err := get("http://"+*addr+"/db/"+key(rand.IntN(*records)), &b); err != nil {
					log.Fatal(err)
				}
				own = append(own, time.Since(start))
				time.Sleep(*pause)
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
		})
	}
	all.Wait()
	slices.Sort(times)
	return times[len(times)*99/100], float64(taken.Load()) / while.Seconds()
}
