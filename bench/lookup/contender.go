package main

import (
	"fmt"
	"regexp"

	"sequins/bench/internal/data"
	"sequins/blocks"
)

// contender is a store whose lookups are measured.
type contender interface {
	fmt.Stringer
	// build makes the store's files, unless they are there, and returns their path.
	build(c *data.Cache, s data.Spec) (string, error)
	open(path string) error
	// get returns the value of a key. It is valid until the next call. Callers take turns.
	get(key []byte) ([]byte, bool, error)
	close() error
}

// batcher is a contender that can answer many keys at once.
type batcher interface {
	// getBatch calls found with each value.
	getBatch(keys [][]byte, found func(value []byte)) error
}

// reference is the contender that all others are compared with.
const reference = "sequins none 4K"

// usual is the default configuration.
const usual = "sequins fsst 4K"

var (
	codecs    = []blocks.Compression{blocks.None, blocks.FSST, blocks.Zstd}
	pageSizes = []int{4096, 2048, 1024}
)

// peersInC are those whose libraries are in C, where these are installed: see the build tags.
var peersInC []contender

// contenders returns the contenders whose names match; the reference is always the first.
func contenders(pattern string) ([]contender, error) {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var all []contender
	for _, c := range codecs {
		for _, size := range pageSizes {
			all = append(all, &block{codec: c, pageSize: size})
		}
	}
	all = append(all, &bboltDB{}, &pebbleTable{}, &pebbleTable{snappy: true})
	all = append(all, peersInC...)
	var chosen []contender
	for _, c := range all {
		if c.String() == reference || match.MatchString(c.String()) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}
