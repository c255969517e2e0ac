package load

import (
	"context"
	"errors"
	"io"

	"sequins/input/avro"
	"sequins/input/sequencefile"
	"sequins/internal/render"
	"sequins/shard"
)

// samplePlaces is the number of places that are sampled in a file besides its head.
const samplePlaces = 4

// placeOf returns the offset of a place in a file and how many keys to read there. The first place is
// the end, where the keys of sorted files differ most from those of the head. In a small file, which
// may have only two or three blocks, more keys are read at each place.
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

// probe samples keys from a place of a file. It does nothing for files that are short or of a format
// without sync markers.
//
// Data that looks like a sync marker can occur inside a record, by accident or on purpose, and cause a
// format error. Such an error therefore does not fail the plan, and the keys read before it are
// ignored. LoadInto reports real damage.
func (s *sampler) probe(ctx context.Context, f *sample, place int) (err error) {
	file := s.plan.Files[f.file]
	if f.done || file.Size < sampleProbed || !s.plan.hasSyncMarkers() {
		return nil
	}
	offset, keys := placeOf(place, file.Size)
	body, err := s.l.Open(ctx, s.plan, file, offset)
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

// keysAt passes the keys after the next sync marker of r to a Detector.
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
	fits := s.names.detector()
	for size := 0; read < keys && size < probeBytes && in.Scan(); read++ {
		fits.Add(s.plan.parts[f.file], in.Key())
		size += len(in.Key()) + len(in.Value())
	}
	err = in.Err()
	if s.l.tolerance != nil && errors.Is(err, render.ErrNullKey) {
		err = nil // the sample ends there
	}
	return fits, read, errors.Join(err, in.Close())
}

// hasSyncMarkers reports whether files of the plan's format can be read from any offset.
func (p *Plan) hasSyncMarkers() bool {
	return p.Format == FormatSequenceFile || p.Format == FormatAvro
}
