package main

import (
	"fmt"

	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"sequins/bench/internal/data"
)

// dictionary is the experiment: values packed one by one, with a dictionary trained on a sample of them,
// in pages that are not packed. A lookup then unpacks one value and not a page.
type dictionary struct {
	codec  string // "s2" or "zstd"
	s2     *s2.Dict
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	packed []byte
}

const (
	sampleValues   = 20_000
	sampleBytes    = 4 << 20
	dictionarySize = 32 << 10
)

// Each zstd frame begins with the same four bytes, which are left out.
const zstdMagic = "\x28\xb5\x2f\xfd"

func (d *dictionary) train(s data.Spec) error {
	var sample [][]byte
	for i, n := 0, min(sampleValues, s.Records, sampleBytes/s.ValueSize); i < n; i++ {
		sample = append(sample, s.Value(nil, s.Records/n*i))
	}
	o := dict.Options{MaxDictSize: dictionarySize, HashBytes: 6, ZstdLevel: zstd.SpeedFastest}
	if d.codec == "s2" {
		b, err := dict.BuildS2Dict(sample, o)
		if err != nil {
			return fmt.Errorf("s2 dictionary: %w", err)
		}
		if d.s2 = s2.NewDict(b); d.s2 == nil {
			return fmt.Errorf("s2 dictionary of %d bytes is not one", len(b))
		}
		return nil
	}
	b, err := dict.BuildZstdDict(sample, o)
	if err != nil {
		return fmt.Errorf("zstd dictionary: %w", err)
	}
	if d.enc, err = zstd.NewWriter(nil, zstd.WithEncoderDict(b), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	d.dec, err = zstd.NewReader(nil, zstd.WithDecoderDicts(b), zstd.WithDecoderConcurrency(1))
	return err
}

func (d *dictionary) pack(dst, value []byte) []byte {
	if d.codec == "s2" {
		if n := s2.MaxEncodedLen(len(value)); cap(dst) < n {
			dst = make([]byte, n)
		}
		return d.s2.Encode(dst[:cap(dst)], value)
	}
	d.packed = d.enc.EncodeAll(value, d.packed[:0])
	return append(dst, d.packed[len(zstdMagic):]...)
}

func (d *dictionary) unpack(dst, packed []byte) ([]byte, error) {
	if d.codec == "s2" {
		return d.s2.Decode(dst[:cap(dst)], packed)
	}
	d.packed = append(append(d.packed[:0], zstdMagic...), packed...)
	return d.dec.DecodeAll(d.packed, dst)
}
