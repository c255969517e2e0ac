package load

import (
	"context"
	"errors"
	"io"

	"sequins/avro"
	"sequins/sequencefile"
	"sequins/shard"
	"sequins/source"
)

// samplePlaces is how many places of a file are looked at beside its head.
const samplePlaces = 4

// placeOf returns the offset of a place in a file, and how many keys are read
// there: first the end, where the keys of sorted files differ most from those of
// the head, then places between. A small file is read on from each, as it can be
// of two or three blocks.
func placeOf(place int, size int64) (offset int64, keys int) {
	if place == 0 {
		return size - min(sampleTail, size/4), probeTail
	}
	offset = [samplePlaces]int64{1: size / 2, 2: size / 4, 3: size / 8 * 5}[place]
	if size < sampleSmall {
		return offset, probeTail
	}
	return offset, probeKeys
}

// probe looks at the keys from a place of a file on. It does nothing for files
// that are short or of a format without sync markers.
//
// A sync marker can stand in a record by chance or by malice, and what follows
// it is then nonsense, so an error of the format does not end the plan, and
// what was read before it does not count. A file that is damaged at this place
// is for Load to find.
func (s *sampler) probe(ctx context.Context, f *sample, place int) (err error) {
	file := s.plan.Files[f.file]
	if f.done || file.Size < sampleProbed || !s.plan.hasSyncMarkers() {
		return nil
	}
	offset, keys := placeOf(place, file.Size)
	body, err := s.l.src.Open(ctx, s.plan.DB, s.plan.Version, file, source.ReadOptions{Offset: offset, Bandwidth: s.l.opts.Bandwidth})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	in := &meter{r: body, n: offset, size: file.Size, path: f.in.path}
	fits, read, err := s.keysAt(f, in, offset, keys)
	s.l.metrics.Read(s.plan.DB, in.n-offset, int64(read))
	if errors.Is(err, sequencefile.ErrCorrupt) || errors.Is(err, avro.ErrCorrupt) {
		return nil
	}
	if err == nil {
		f.fits.Merge(fits)
	}
	return err
}

// keysAt shows the keys behind the next sync marker of r to a Detector.
func (s *sampler) keysAt(f *sample, r io.Reader, offset int64, keys int) (_ *shard.Detector, read int, err error) {
	var in records
	switch head := f.in.records.(type) {
	case *sequencefile.Reader:
		in, err = sequencefile.NewReaderAt(r, head.Header(), offset, f.in.path)
	case *avro.Reader:
		in, err = head.From(r)
	}
	if err != nil {
		return nil, 0, err
	}
	fits := shard.NewDetector(s.plan.Partitions)
	for size := 0; read < keys && size < probeBytes && in.Scan(); read++ {
		fits.Add(s.plan.parts[f.file], in.Key())
		size += len(in.Key()) + len(in.Value())
	}
	return fits, read, errors.Join(in.Err(), in.Close())
}

// hasSyncMarkers reports whether files of the plan's format can be read from
// any place on.
func (p *Plan) hasSyncMarkers() bool {
	return p.Format == FormatSequenceFile || p.Format == FormatAvro
}
