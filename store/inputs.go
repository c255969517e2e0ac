package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sequins/blocks"
)

// inputsName is the file in a version's directory that lists what its blocks were made from, one line of JSON,
//
//	{"format_version":1,"crc32c":"0123abcd","inputs":[{"partition":0,"hash":"…","outline":"…","content":"…","records":20},…]}
//
// where crc32c is that of the array. A load process writes it. It saves work of later loads, and nothing else: a file that is missing,
// damaged or of another format version lists no blocks. So it is not synced. A block is only of an entry if it has the content of
// that.
const (
	inputsName    = "INPUTS.json"
	inputsVersion = 1
	maxInputs     = 64 << 20 // bytes
	inputDigits   = 64       // of a hash
	outlineDigits = 16
	maxContent    = 64
)

// An Input is what the block of a partition was made from.
type Input struct {
	Partition int `json:"partition"`
	// Hash is a SHA-256 of everything that determines the block, as hexadecimal digits, and Outline the first 8 bytes of a
	// hash of the part of it that is known without reading a file.
	Hash    string `json:"hash"`
	Outline string `json:"outline"`
	// Content and Records are those of the block, see blocks.Properties.
	Content string `json:"content"`
	Records int64  `json:"records"`
}

// A Former is the block of an Input, in the directory of another version of the db.
type Former struct {
	Input
	Path string
}

// Valid reports whether the fields have the form that they should.
func (in Input) Valid() bool {
	return 0 <= in.Partition && in.Partition < maxPartitions && in.Records >= 0 && isHex(in.Hash, inputDigits) && isHex(in.Outline, outlineDigits) &&
		len(in.Content) <= maxContent
}

func isHex(s string, digits int) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == digits
}

// inputsEnvelope is what the file contains.
type inputsEnvelope struct {
	FormatVersion int             `json:"format_version"`
	CRC           string          `json:"crc32c"`
	Inputs        json.RawMessage `json:"inputs"`
}

// encodeInputs returns the content of the file.
func encodeInputs(all []Input) ([]byte, error) {
	if len(all) > maxPartitions {
		return nil, fmt.Errorf("%d blocks: %w", len(all), ErrTooLarge)
	}
	list, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(inputsEnvelope{FormatVersion: inputsVersion, CRC: manifestCRC(list), Inputs: list})
	if err == nil && len(data) >= maxInputs {
		err = fmt.Errorf("%d bytes: %w", len(data), ErrTooLarge)
	}
	return append(data, '\n'), err
}

// parseInputs reads the content of the file; nil if that is not as it was written.
func parseInputs(data []byte) []Input {
	var env inputsEnvelope
	if strictDecoder(data).Decode(&env) != nil || env.FormatVersion != inputsVersion || env.CRC != manifestCRC(env.Inputs) ||
		bytes.Count(env.Inputs, []byte("{")) > maxPartitions {
		return nil
	}
	var all []Input
	if strictDecoder(env.Inputs).Decode(&all) != nil || slices.ContainsFunc(all, func(in Input) bool { return !in.Valid() }) {
		return nil
	}
	return all
}

// Inputs returns what SetInputs has recorded last for the version.
func (s Staging) Inputs() []Input { return s.inputs(s.Path) }

func (s Staging) inputs(dir string) []Input {
	data, err := readFile(s.fileSystem(), filepath.Join(dir, inputsName), maxInputs)
	if err != nil {
		return nil
	}
	return parseInputs(data)
}

// SetInputs records what blocks of the version were made from. Only one load of a version may do so at a time.
func (s Staging) SetInputs(all []Input) error {
	data, err := encodeInputs(all)
	if err != nil {
		return fmt.Errorf("recording the inputs of blocks: %w", err)
	}
	final := filepath.Join(s.Path, inputsName)
	temp := final + s.suffix()
	f, err := s.fileSystem().Create(temp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fileSystem().Rename(temp, final)
	}
	if err != nil {
		err = errors.Join(err, s.remove(temp))
	}
	return err
}

// Former lists blocks of all other versions of the db whose inputs are recorded, those of the newest version first. A block may be
// missing, damaged or have another content.
func (s Staging) Former() ([]Former, error) {
	db := filepath.Dir(s.Path)
	entries, err := s.fileSystem().ReadDir(db)
	if err != nil {
		return nil, err
	}
	var all []Former
	for _, e := range slices.Backward(entries) {
		if !e.IsDir() || !isVersionDir(e.Name()) || e.Name() == filepath.Base(s.Path) {
			continue
		}
		dir := filepath.Join(db, e.Name())
		for _, in := range s.inputs(dir) {
			all = append(all, Former{in, filepath.Join(dir, blockName(in.Partition))})
		}
	}
	return all, nil
}

// LinkBlock makes the file of a former block that of a finished block too, to be given to Publish or RemoveBlock, and returns its name. It
// does not check the block, which is durable. The error wraps [fs.ErrNotExist] if the former version has been removed.
func (s Staging) LinkBlock(f Former) (name string, err error) {
	if !strings.HasSuffix(f.Path, blockSuffix) || filepath.Base(f.Path) != blockName(f.Partition) {
		return "", fmt.Errorf("%s is not the block of partition %d", f.Path, f.Partition)
	}
	name = s.blockPath(f.Partition)
	return name, s.fileSystem().Link(f.Path, name)
}

// FinishedPath is the name of a finished block until it is published.
func (s Staging) FinishedPath(p int) string { return s.blockPath(p) }

// Is reports whether a block with these properties is that of in.
func (in Input) Is(p blocks.Properties) bool {
	return p.Partition == in.Partition && p.ContentHash == in.Content && p.Records == in.Records
}
