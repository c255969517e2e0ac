package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"

	"sequins/bench/internal/data"
	"sequins/bench/internal/proc"
	"sequins/blocks"
	"sequins/load"
	"sequins/shard"
	"sequins/source/local"
	"sequins/store"
	"sequins/test/speed"
)

// work does one task in its own process, and prints the most memory that it had, in bytes.
func work(job string) error {
	var t task
	if err := json.Unmarshal([]byte(job), &t); err != nil {
		return err
	}
	err := os.MkdirAll(t.Out, 0o755)
	if err != nil {
		return err
	}
	if t.Profile != "" {
		f, err := os.Create(t.Profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
	}
	switch t.Task {
	case "copy":
		err = eachFile(&t, func(w io.Writer, r io.Reader) error {
			_, err := io.CopyBuffer(w, r, make([]byte, t.Piece))
			return err
		})
	case "copy snappy":
		err = eachFile(&t, func(w io.Writer, r io.Reader) error { return copyPieces(w, r, snappy.Encode) })
	case "copy buffered":
		err = eachFile(&t, func(w io.Writer, r io.Reader) error { return copyBuffered(w, r, snappy.Encode) })
	case "copy s2":
		err = eachFile(&t, func(w io.Writer, r io.Reader) error { return copyBuffered(w, r, s2.EncodeSnappy) })
	case "load":
		err = t.load()
	default:
		err = fmt.Errorf("no such task: %q", t.Task)
	}
	if err != nil {
		return err
	}
	pprof.StopCPUProfile()
	most, err := proc.PeakMemory(os.Getpid())
	if err != nil {
		return err
	}
	fmt.Println(most)
	os.Exit(0) // without the tables of a parent
	return nil
}

// eachFile copies the files of the input, one after another, each with an fsync.
func eachFile(t *task, do func(io.Writer, io.Reader) error) error {
	files, err := data.Files(t.Root)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := copyFile(filepath.Join(t.Out, filepath.Base(name)), name, do); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(to, from string, do func(io.Writer, io.Reader) error) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	// Nothing but Read and Write, or the kernel would copy by itself.
	if err := do(struct{ io.Writer }{out}, struct{ io.Reader }{in}); err != nil {
		return err
	}
	return out.Sync()
}

// copyBuffered is copyPieces with few system calls.
func copyBuffered(w io.Writer, r io.Reader, encode encoder) error {
	out := bufio.NewWriterSize(w, 256<<10)
	if err := copyPieces(out, bufio.NewReaderSize(r, 256<<10), encode); err != nil {
		return err
	}
	return out.Flush()
}

// An encoder packs src into dst, which is long enough.
type encoder func(dst, src []byte) []byte

// copyPieces packs 4 KiB at a time.
func copyPieces(w io.Writer, r io.Reader, encode encoder) error {
	piece := make([]byte, blocks.DefaultBlockSize)
	packed := make([]byte, 4+snappy.MaxEncodedLen(len(piece)))
	for {
		n, err := io.ReadFull(r, piece)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		size := len(encode(packed[4:], piece[:n]))
		binary.LittleEndian.PutUint32(packed, uint32(size))
		if _, err := w.Write(packed[:4+size]); err != nil {
			return err
		}
	}
}

// load loads a version like a node: it plans it and builds all blocks.
func (t *task) load() error {
	src, err := local.New(t.Root)
	if err != nil {
		return err
	}
	codec, err := blocks.ParseCompression(t.Codec)
	if err != nil {
		return err
	}
	l := load.New(src, nil, load.Options{Memory: t.Memory, Compression: codec})
	return speed.LoadAll(context.Background(), l, t.Out, data.DB, data.Version)
}

// verify compares the blocks that a child has loaded with the records.
func (r *run) verify(t *task) error {
	local, err := store.Open(t.Out)
	if err != nil {
		return err
	}
	defer local.Close()
	inputs, err := local.Contents(data.DB)
	if err != nil {
		return err
	}
	dir, err := local.Dir(data.DB, inputs[0])
	if err != nil {
		return err
	}
	readers := make([]*blocks.Reader, *files)
	var sum int64
	for i := range readers {
		if readers[i], err = blocks.Open(dir.BlockPath(i)); err != nil {
			return err
		}
		defer readers[i].Close()
		sum += readers[i].Properties().Records
	}
	if sum != int64(r.spec.Records) {
		return fmt.Errorf("%d records were loaded of %d", sum, r.spec.Records)
	}
	var s blocks.Scratch
	for i := 0; i < r.spec.Records; i += 97 {
		key := r.spec.Key(nil, i)
		v, ok, err := readers[shard.String.Partition(key, *files)].Get(key, &s)
		if err := r.spec.Verify(i, v.Bytes(), ok, err); err != nil {
			return err
		}
	}
	return nil
}
