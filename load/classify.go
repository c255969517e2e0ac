package load

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sequins/shard"
	"sequins/source"
)

// classify reports by the files' names whether a version consists of Sparkey logs, and returns the data
// files. Index files of Sparkey logs are skipped, because loads do not need them. The format of other
// files is detected from their first bytes, see sniff.
func classify(files []source.File) (format string, data []source.File, err error) {
	var log, other string // an example of each, for the error
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

// IsLog reports whether a file of this name is a Sparkey log.
func IsLog(name string) bool { return strings.HasSuffix(name, ".spl") }

// IsLogIndex reports whether a file of this name is the index of a Sparkey log. Loads do not read
// indexes.
func IsLogIndex(name string) bool {
	return strings.HasSuffix(name, ".spi") || strings.HasSuffix(name, ".spi.sz")
}

// place sets the number of partitions and, from the files' names, the partition that each file would
// hold if a partitioner cut them. fits reports whether that is possible.
func (p *Plan) place() (fits bool, err error) {
	if p.Format == FormatSparkey {
		return true, p.placeLogs()
	}
	n := len(p.Files)
	if n > shard.MaxPartitions {
		return false, fmt.Errorf("%d files are more than the %d partitions that a version can have", n, shard.MaxPartitions)
	}
	p.Partitions = n
	p.parts = make([]int, n)
	if n == 1 {
		return true, nil // partition 0, whatever its name
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

// placeLogs sets the partition of each log from its name, see LogPartition. A partition can have
// several logs, or none if it is empty.
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

// partNumber matches the partition number in a file name: after "part" at the start of the name or of a
// word, as in part-00003, part-r-00003, part3 and 20260131-part-3.
var partNumber = regexp.MustCompile(`(?:^|[^A-Za-z0-9])part[-_]?(?:[A-Za-z]+[-_])?([0-9]+)`)

// firstDigits matches the first run of digits.
var firstDigits = regexp.MustCompile(`([0-9]+)`)

// LogPartition returns the partition of a Sparkey log: the number after "part" in its name, or else the
// first run of digits. A name without digits and a number of shard.MaxPartitions or more are errors.
func LogPartition(name string) (int, error) {
	match := partNumber.FindStringSubmatch(name)
	if match == nil {
		match = firstDigits.FindStringSubmatch(name)
	}
	if match == nil {
		return 0, fmt.Errorf("%s: the name of this Sparkey log has no number to be its partition: name it part-00000.spl", name)
	}
	part, err := strconv.Atoi(match[1])
	if err != nil || part >= shard.MaxPartitions {
		return 0, fmt.Errorf("%s: the number %s is taken for this Sparkey log's partition, and a version has %d at most: name it part-00000.spl",
			name, match[1], shard.MaxPartitions)
	}
	return part, nil
}
