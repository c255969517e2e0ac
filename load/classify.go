package load

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sequins/shard"
	"sequins/source"
)

// classify reports by the files' names whether a version consists of Sparkey logs or of finished blocks,
// and returns the data files. Index files of Sparkey logs are skipped, because loads do not need them. The
// format of other files is detected from their first bytes, see sniff.
func classify(files []source.File) (format string, data []source.File, err error) {
	var block, log, index, other string // an example of each, for errors
	blocks := 0
	for _, f := range files {
		switch {
		case strings.HasSuffix(f.Name, source.BlockSuffix):
			block, blocks = f.Name, blocks+1
		case IsLog(f.Name):
			log = f.Name
		case IsLogIndex(f.Name):
			index = f.Name
		case other == "":
			other = f.Name
		}
	}
	switch {
	case blocks > 0 && blocks < len(files):
		return FormatBlocks, files, fmt.Errorf("%w: %s, a block, and %s", ErrMixed, block, cmp.Or(other, log, index))
	case blocks > 0:
		return FormatBlocks, files, nil
	case log != "" && other != "":
		return "", nil, fmt.Errorf("%w: %s and %s", ErrMixed, log, other)
	case log != "":
		return FormatSparkey, slices.DeleteFunc(slices.Clone(files), func(f source.File) bool { return IsLogIndex(f.Name) }), nil
	}
	return FormatSequenceFile, files, nil
}

// IsLog reports whether a file of this name is a Sparkey log.
func IsLog(name string) bool { return strings.HasSuffix(name, ".spl") }

// IsLogIndex reports whether a file of this name is the index of a Sparkey log. Loads do not read
// indexes.
func IsLogIndex(name string) bool {
	return strings.HasSuffix(name, ".spi") || strings.HasSuffix(name, ".spi.sz")
}

// A layout is how many partitions there can be according to the names of the files, if a partitioner cut them.
type layout struct {
	whole       int // if no file is left out, or as configured; 0: they do not fit
	least, most int // otherwise; most < least, or least 0: there is no other number
	naming      shard.Naming
}

// maxGaps limits the number of partitions without files: there are at most maxGaps times as many partitions as the greatest number
// of a file suggests.
const maxGaps = 4

// newLayout returns the layout of files with numbers up to last, of which the version has whole if none is left out.
func newLayout(whole, last int, naming shard.Naming) layout {
	return layout{whole: whole, least: last + 1, most: min(maxGaps*(last+1), shard.MaxPartitions), naming: naming}
}

// fits reports whether a partitioner can have cut the files.
func (l layout) fits() bool { return l.whole > 0 || 0 < l.least && l.least <= l.most }

func (l layout) detector() *shard.Detector {
	return shard.NewDetector(l.whole, max(1, l.least), l.most, l.naming)
}

// place sets the number of partitions if the files are not aligned: that of the files, unless one is configured. It also sets
// the partition of each file by its name, if a partitioner cut them.
func (p *Plan) place(configured int) (layout, error) {
	p.parts = make([]int, len(p.Files))
	if p.Format == FormatSparkey {
		return p.placeLogs(configured)
	}
	n := len(p.Files)
	if n > shard.MaxPartitions {
		return layout{}, fmt.Errorf("%d files are more than the %d partitions that a version can have", n, shard.MaxPartitions)
	}
	if p.Partitions = configured; configured == 0 {
		p.Partitions = n
	}
	if p.Partitions == 1 {
		return layout{whole: 1}, nil // partition 0, whatever the names
	}
	return p.placeFiles(configured), nil
}

// placeFiles sets the partitions of files. Several files can be of one partition if all names have numbers, and some partitions can be without.
func (p *Plan) placeFiles(configured int) layout {
	n, last := len(p.Files), 0
	naming := namingOf(p.Files)
	taken := make(map[int]bool, n)
	for i, f := range p.Files {
		p.parts[i] = shard.FileIndex(f.Name, i)
		taken[p.parts[i]] = true
		last = max(last, p.parts[i])
	}
	numbered := naming != shard.OtherNames
	switch {
	case last >= shard.MaxPartitions, !numbered && (len(taken) < n || last >= n):
		return layout{}
	case configured > 0 && last < configured && (numbered || n == configured):
		return layout{whole: configured, naming: naming}
	case configured > 0, len(taken) == 1 && n > 1:
		return layout{}
	case !numbered:
		return layout{whole: n}
	case len(taken) == last+1:
		return newLayout(last+1, last, naming)
	}
	return newLayout(0, last, naming)
}

// namingOf returns how all files are named: OtherNames if one is without a number, PartNames if there are several kinds.
func namingOf(files []source.File) shard.Naming {
	_, all := shard.FileNumber(files[0].Name)
	for _, f := range files {
		switch _, naming := shard.FileNumber(f.Name); {
		case naming == shard.OtherNames:
			return shard.OtherNames
		case naming != all:
			all = shard.PartNames
		}
	}
	return all
}

// placeLogs sets the partition of each log from its name, see LogPartition. A partition can have
// several logs, or none if it is empty.
func (p *Plan) placeLogs(configured int) (layout, error) {
	last := 0
	for i, f := range p.Files {
		part, err := LogPartition(f.Name)
		if err != nil {
			return layout{}, err
		}
		p.parts[i] = part
		last = max(last, part)
	}
	p.Partitions = last + 1
	switch {
	case configured > last:
		p.Partitions = configured
		return layout{whole: configured, naming: shard.PartNames}, nil
	case configured > 0:
		p.Partitions = configured
		return layout{}, nil
	}
	return newLayout(last+1, last, shard.PartNames), nil
}

// partNumber matches the partition number in a file name: after "part" at the start of the name or of a
// word, as in part-00003, part-r-00003, part3 and 20260131-part-3.
var partNumber = regexp.MustCompile(`(?:^|[^A-Za-z0-9])part[-_]?(?:[A-Za-z]+[-_])?([0-9]+)`)

var firstDigits = regexp.MustCompile(`([0-9]+)`)

// LogPartition returns the partition of a Sparkey log: the number after "part" in its name, or else the
// first run of digits. A name without digits and a number of shard.MaxPartitions or more are errors.
func LogPartition(name string) (int, error) {
	base := path.Base(name) // directories are columns of a partitioned table
	match := partNumber.FindStringSubmatch(base)
	if match == nil {
		match = firstDigits.FindStringSubmatch(base)
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
