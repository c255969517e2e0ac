package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sequins/input/sequencefile"
	"sequins/shard"
)

// The data of the demo is the catalog of a shop, as a nightly job could write it: a key per product and
// a JSON object as its value. The second version differs in prices, stock and a few products.
const (
	demoDB     = "products"
	demoFirst  = "2026-01-30"
	demoSecond = "2026-01-31"
	demoFiles  = 4
)

var (
	demoColours   = strings.Fields("amber beige black blue brown coral cream gold green grey indigo ivory lilac navy olive orange pink red rust silver teal white yellow")
	demoMaterials = strings.Fields("bamboo canvas ceramic cork cotton felt glass hemp leather linen oak paper pine silk steel tin walnut wool")
	demoThings    = strings.Fields("apron bag basket belt bench blanket bowl box chair clock cup cushion frame hat hook jar jug lamp mat pouch rack rug scarf shelf stool tray vase")
)

// demoProduct is the value of a key.
type demoProduct struct {
	Name     string  `json:"name"`
	Price    float64 `json:"price"`
	Currency string  `json:"currency"`
	Stock    int     `json:"stock"`
	AsOf     string  `json:"as_of"`
}

// demoCatalogue returns the records of a version: all combinations of the words except one in fifty,
// chosen by a hash of the version.
func demoCatalogue(version string) (keys []string, products map[string]demoProduct) {
	products = map[string]demoProduct{}
	for _, colour := range demoColours {
		for _, material := range demoMaterials {
			for _, thing := range demoThings {
				key := colour + "-" + material + "-" + thing
				today, always := demoDice(version+key), demoDice(key)
				if today%50 == 0 {
					continue // sold out
				}
				keys = append(keys, key)
				products[key] = demoProduct{
					Name:     strings.ReplaceAll(key, "-", " "),
					Price:    float64(500+always%20_000+today%500) / 100,
					Currency: "EUR",
					Stock:    int(today % 40),
					AsOf:     version,
				}
			}
		}
	}
	slices.Sort(keys)
	return keys, products
}

// demoDice returns a hash of seed, the same on every machine.
func demoDice(seed string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // never fails
	return h.Sum32()
}

// writeDemoVersion writes a version as a MapReduce job does, _SUCCESS last. It returns the number of
// records.
func writeDemoVersion(source, version string) (int, error) {
	dir := filepath.Join(source, demoDB, version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	keys, products := demoCatalogue(version)
	for i := range demoFiles {
		if err := writeDemoFile(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)), i, keys, products); err != nil {
			return 0, err
		}
	}
	return len(keys), os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644)
}

// writeDemoFile writes the records that Hadoop's HashPartitioner assigns to reducer i.
func writeDemoFile(path string, i int, keys []string, products map[string]demoProduct) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, err := sequencefile.NewWriter(f, sequencefile.WriterOptions{
		KeyClass:    sequencefile.Text,
		ValueClass:  sequencefile.Text,
		Compression: sequencefile.Block,
		Codec:       sequencefile.SnappyCodec,
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if shard.Hadoop.Partition([]byte(key), demoFiles) != i {
			continue
		}
		value, err := json.Marshal(products[key])
		if err != nil {
			return err
		}
		if err := w.Append([]byte(key), value); err != nil {
			return err
		}
	}
	return w.Close()
}
