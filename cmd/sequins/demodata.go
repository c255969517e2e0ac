package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"sequins/shard"
)

// The data of the demo is the catalog of a shop, as a nightly job could write it: a key per product and
// a JSON object as its value. The second version differs in prices and stock.
const (
	demoDB     = "products"
	demoFirst  = "2026-01-30"
	demoSecond = "2026-01-31"
	demoFiles  = 4
)

var (
	colours   = strings.Fields("amber beige black blue brown coral cream gold green grey indigo ivory lilac navy olive orange pink red rust silver teal white yellow")
	materials = strings.Fields("bamboo canvas ceramic cork cotton felt glass hemp leather linen oak paper pine silk steel tin walnut wool")
	things    = strings.Fields("apron bag basket belt bench blanket bowl box chair clock cup cushion frame hat hook jar jug lamp mat pouch rack rug scarf shelf stool tray vase")
)

// demoKeys returns the keys of both versions: all combinations of the words.
func demoKeys() (keys []string) {
	for _, colour := range colours {
		for _, material := range materials {
			for _, thing := range things {
				keys = append(keys, colour+"-"+material+"-"+thing)
			}
		}
	}
	return keys
}

// product returns the value of a key in a version, with a price and a stock by a hash of both.
func product(version, key string) string {
	today, always := diceOf(version+key), diceOf(key)
	price := float64(500+always%20_000+today%500) / 100
	return fmt.Sprintf(`{"name":%q,"price":%v,"currency":"EUR","stock":%d,"as_of":%q}`, strings.ReplaceAll(key, "-", " "), price, today%40, version)
}

// diceOf returns a hash of seed, the same on every machine.
func diceOf(seed string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed)) // never fails
	return h.Sum32()
}

// writeDemo writes a version below a source as a MapReduce job does, _SUCCESS last: SequenceFiles of BytesWritables without compression, whose
// records are divided by Hadoop's HashPartitioner. It returns the number of records.
func writeDemo(source, version string) (int, error) {
	const class = "org.apache.hadoop.io.BytesWritable"
	header := "SEQ\x06" + strings.Repeat(string(rune(len(class)))+class, 2) +
		"\x00\x00\x00\x00\x00\x00" + // no compression, and no metadata
		"sync of the demo"
	var files [demoFiles][]byte
	for i := range files {
		files[i] = []byte(header)
	}
	keys := demoKeys()
	for _, key := range keys {
		value, out := product(version, key), &files[shard.Hadoop.Partition([]byte(key), demoFiles)]
		*out = binary.BigEndian.AppendUint32(*out, uint32(4+len(key)+4+len(value)))
		*out = binary.BigEndian.AppendUint32(*out, uint32(4+len(key)))
		*out = append(binary.BigEndian.AppendUint32(*out, uint32(len(key))), key...)
		*out = append(binary.BigEndian.AppendUint32(*out, uint32(len(value))), value...)
	}
	dir := filepath.Join(source, demoDB, version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for i, data := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-r-%05d", i)), data, 0o644); err != nil {
			return 0, err
		}
	}
	return len(keys), os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644)
}
