package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sequins/shard"
	"sequins/source"
)

// classify says by the files' names whether a version has Sparkey's logs, and
// returns the files with data. Beside Sparkey's logs lie their indexes, which are not
// needed. Of which format other files are, their first bytes will tell: see sniff.
func classify(files []source.File) (format string, data []source.File, err error) {
	var log, other string // one of each, for the error
	for _, f := range files {
		if IsLog(f.Name) {
			log = f.Name
		}
	}
	for _, f := range files {
		switch {
		case log != "" && IsLogIndex(f.Name):
			continue
		case !IsLog(f.Name) && other == "":
			other = f.Name
		}
		data = append(data, f)
	}
	if log != "" && other != "" {
		return "", nil, fmt.Errorf("%w: %s and %s", ErrMixed, log, other)
	}
	if log != "" {
		return FormatSparkey, data, nil
	}
	return FormatSequenceFile, data, nil
}

// IsLog reports whether a load takes a file of this name for a Sparkey log.
func IsLog(name string) bool { return strings.HasSuffix(name, ".spl") }

// IsLogIndex reports whether a file of this name is the index of a Sparkey log, which a load does
// not read.
func IsLogIndex(name string) bool {
	return strings.HasSuffix(name, ".spi") || strings.HasSuffix(name, ".spi.sz")
}

// place decides how many partitions there are and, by the files' names, which
// of them each file would hold if the files are cut by a partitioner. fits is
// false if they cannot be.
func (p *Plan) place() (fits bool, err error) {
	if p.Format == FormatSparkey {
		return true, p.placeLogs()
	}
	n := len(p.Files)
	if n > MaxPartitions {
		return false, fmt.Errorf("%d files are more than the %d partitions that a version can have", n, MaxPartitions)
	}
	p.Partitions = n
	p.parts = make([]int, n)
	if n == 1 {
		return true, nil // its only file is partition 0, whatever its name
	}
	taken := make([]bool, n)
	for i, f := range p.Files {
		index := shard.FileIndex(f.Name, i)
		if index >= n || taken[index] {
			return false, nil
		}
		taken[index] = true
		p.parts[i] = index
	}
	return true, nil
}

// placeLogs takes the partition of each log from its name: see LogPartition.
// A partition can have several logs, and, where a job writes none for an empty
// one, none.
func (p *Plan) placeLogs() error {
	p.parts = make([]int, len(p.Files))
	for i, f := range p.Files {
		part, err := LogPartition(f.Name)
		if err != nil {
			return err
		}
		p.parts[i] = part
		p.Partitions = max(p.Partitions, part+1)
	}
	return nil
}

// partNumber is where a job's number stands in the name of a file: at the start
// of it or of a word in it, as in part-00003, part-r-00003, part3 and 20260131-part-3.
var partNumber = regexp.MustCompile(`(?:^|[^A-Za-z0-9])part[-_]?(?:[A-Za-z]+[-_])?([0-9]+)`)

// firstDigits is the first run of digits.
var firstDigits = regexp.MustCompile(`([0-9]+)`)

// LogPartition returns the partition of a Sparkey log: the number behind
// "part" in its name, wherever that is, and else the first run of digits. A
// name without one, and a number of MaxPartitions or more, is an error.
func LogPartition(name string) (int, error) {
	match := partNumber.FindStringSubmatch(name)
	if match == nil {
		match = firstDigits.FindStringSubmatch(name)
	}
	if match == nil {
		return 0, fmt.Errorf("%s: the name of this Sparkey log has no number to be its partition: name it part-00000.spl", name)
	}
	part, err := strconv.Atoi(match[1])
	if err != nil || part >= MaxPartitions {
		return 0, fmt.Errorf("%s: the number %s is taken for this Sparkey log's partition, and a version has %d at most: name it part-00000.spl",
			name, match[1], MaxPartitions)
	}
	return part, nil
}
