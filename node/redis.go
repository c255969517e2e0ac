package node

import (
	"context"
	"errors"

	"sequins/observe/metrics"
	"sequins/server/resp"
)

// newRedis returns the server of the Redis protocol. Its limits and rights are those of HTTP.
func (n *Node) newRedis() *resp.Server {
	o := n.o.Redis
	o.Read, o.Write = n.o.Server.Timeouts.Read, n.o.Server.Timeouts.Write
	o.MaxConns, o.OtherConns = n.o.Server.MaxConns, func() int { return n.server.Connections() }
	o.Tokens, o.Build = n.o.Server.Tokens, n.o.Build
	o.Exists = func(db []byte) bool { return n.Set(db) != nil || n.MayExist(db) }
	o.Metrics, o.Logger = n.o.Metrics.Server, n.o.Logger
	s := resp.New(n.reads, o)
	s.Hold()
	n.o.Metrics.Server.SetRedis(func() metrics.RedisState {
		conns, handshakes := s.Refused()
		return metrics.RedisState{Connections: s.Connections(), Refused: conns, BadHandshakes: handshakes}
	})
	return s
}

// shutdownServers finishes the requests of all clients.
func (n *Node) shutdownServers(ctx context.Context) error {
	if n.redis == nil {
		return n.server.Shutdown(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- n.redis.Shutdown(ctx) }()
	err := n.server.Shutdown(ctx)
	err = errors.Join(err, <-done)
	n.o.RedisListener.Close() //nolint:errcheck // already closed by the server, unless the start failed
	return err
}
