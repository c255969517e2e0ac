package main

import (
	"os"
	"path/filepath"
	"slices"

	"sequins/bench/internal/data"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/wire"
	"sequins/test/sequencefiles"
)

// build writes the source of sequins: the keys of redis without the name of the db.
func (r *run) build(path string) error {
	dir := filepath.Join(path, data.DB, data.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "part-r-00000"))
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := sequencefiles.NewWriter(f, sequencefiles.WriterOptions{SyncSeed: "redis"})
	if err != nil {
		return err
	}
	var v []byte
	for i := range r.spec.Records {
		v = r.spec.Value(v[:0], i)
		if err := w.Append(key(nil, i)[len(data.DB+"/"):], v); err != nil {
			return err
		}
	}
	return w.Close()
}

// profile takes a profile of sequins while it answers GETs, alone or in pipelines.
func (r *run) profile(n int) error {
	s := r.servers[len(r.servers)-1]
	l := wire.Load{Addr: s.addr, Conns: slices.Max(connections), Requests: r.pipelines, Parse: r.parse, Check: func(int, wire.Reply) error { return nil }}
	name := *profile + ".pipelines"
	if n == 1 {
		name, l.Requests, l.Parse = *profile+".single", nil, wire.Redis
		for _, ids := range r.asked {
			for _, id := range ids {
				l.Requests = append(l.Requests, wire.RedisGet(key(nil, id)))
			}
		}
	}
	setup.Logf("profile of %d GETs at a time: %s", n, name)
	return wire.Profile(l, r.debug, name)
}
