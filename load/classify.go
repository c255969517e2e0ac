package load

import (
	"fmt"
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
		if isLog(f.Name) {
			log = f.Name
		}
	}
	for _, f := range files {
		switch {
		case log != "" && isIndex(f.Name):
			continue
		case !isLog(f.Name) && other == "":
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

func isLog(name string) bool { return strings.HasSuffix(name, ".spl") }

func isIndex(name string) bool {
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

// placeLogs takes the partition of each log from the first digits in its name.
// A partition can have several logs, and, where a job writes none for an empty
// one, none.
func (p *Plan) placeLogs() error {
	p.parts = make([]int, len(p.Files))
	for i, f := range p.Files {
		part, ok := firstNumber(f.Name)
		if !ok {
			return fmt.Errorf("%s: there is no number in the name of this Sparkey log, or a huge one, to be its partition", f.Name)
		}
		if part >= MaxPartitions {
			return fmt.Errorf("%s: partition %d is more than the %d that a version can have", f.Name, part, MaxPartitions)
		}
		p.parts[i] = part
		p.Partitions = max(p.Partitions, part+1)
	}
	return nil
}

// firstNumber returns the number that the first run of digits in s is.
func firstNumber(s string) (int, bool) {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	start := strings.IndexFunc(s, isDigit)
	if start < 0 {
		return 0, false
	}
	s = s[start:]
	if end := strings.IndexFunc(s, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		s = s[:end]
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err == nil
}
