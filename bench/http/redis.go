package main

import (
	"sequins/bench/internal/daemon"
	"sequins/bench/internal/setup"
	"sequins/bench/internal/wire"
)

// startRedis starts redis and gives it all records.
func (r *run) startRedis(cpus string, add func(*daemon.Daemon, error, ...*server) error) error {
	d, err := daemon.Redis(cpus)
	if err := add(d, err, &server{name: "redis", request: wire.RedisGet, parse: wire.Redis}); err != nil {
		return err
	}
	setup.Logf("filling redis")
	return wire.FillRedis(d.Addr, r.spec, r.spec.Key)
}
